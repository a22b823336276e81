"""What an operator chooses: one table, read as the options of every command are."""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from textcls.errors import ConfigError

ENVIRONMENT: Final = "TEXTCLS_SERVE_"
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]|\*")


def _setting(
    default: Any, about: str, *, least: float = 1, most: float | None = None, choices: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"about": about, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one request. The attributes are described where they are defined."""

    max_inputs: int = _setting(64, "Texts in a request; more are answered 413.")
    max_characters: int = _setting(100_000, "Characters of a text; more are answered 413.")
    max_body_bytes: int = _setting(2_000_000, "Bytes of a body; more are answered 413 while they are read.")
    max_explained: int = _setting(
        250_000, "Tokens x labels in an explained answer, which is about 25 bytes for each; more are answered 413."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Limits):
    """All settings of `textcls serve`. The attributes are described where they are defined."""

    host: str = _setting("127.0.0.1", "Address to listen on; 0.0.0.0 is every one, and needs keys.")
    port: int = _setting(8000, "Port to listen on; 0 takes a free one.", least=0, most=65535)
    probe_port: int = _setting(
        0,
        "Port beside the other one for /livez, /readyz and /metrics, without keys, which answers however busy the "
        "other is. For whoever watches over the service: let nobody else reach it. 0: none.",
        least=0,
        most=65535,
    )
    workers: int = _setting(1, "Processes; with 2 or more, one that dies is replaced.")
    threads: int = _setting(
        1,
        "Threads of a worker for long requests; those of up to 2 ms (4 if alone) stay on the event loop.",
    )
    batching: bool = _setting(
        True,
        "Answer short requests that arrive at the same moment as one batch: faster under load, but scores may differ "
        "in their seventh digit by what else arrives.",
    )
    max_queue: int = _setting(64, "Long requests waiting or worked on in a worker; more are answered 429.")
    max_held_bytes: int = _setting(
        128_000_000,
        "About how many bytes a worker holds for its requests: bodies, what the model computes with, answers that are "
        "not yet taken; more are answered 429. Half of it is for bodies.",
        least=1_000_000,
    )
    max_connections: int = _setting(
        1000,
        "Open connections of a worker; for one more the longest idle one is closed, and if none is idle it is answered "
        "429.",
    )
    request_seconds: float = _setting(10.0, "How long a long request may wait and be worked on; then 504.", least=0.01)
    receive_seconds: float = _setting(
        10.0, "How long a request may take to arrive, or an answer to be taken; then 408, or hung up.", least=0.01
    )
    keep_alive_seconds: int = _setting(30, "How long a connection is kept without a request.")
    drain_seconds: float = _setting(
        0.0, "After SIGTERM: how long /readyz says 503 while new connections are still served.", least=0
    )
    load_seconds: float = _setting(
        60.0,
        "How long reading and testing the models may take, at the start and at a reload; then it fails.",
        least=0.01,
    )
    max_model_bytes: int = _setting(
        2_000_000_000, "Bytes of a model file; a larger one is refused before it is read. It is held in memory."
    )
    same_labels: bool = _setting(False, "Refuse a reload that changes the set of labels of a model.")
    stop_seconds: int = _setting(30, "After that: how long requests in flight may take.", least=0)
    api_keys_file: Path | None = _setting(
        None,
        "File of API keys, NAME:KEY or KEY a line; several are valid at once. Or the variable TEXTCLS_API_KEYS. Logs "
        "and metrics show the name.",
    )
    admin_key_file: Path | None = _setting(
        None,
        "File of the key of POST /v1/admin/reload, and of teaching. Or the variable TEXTCLS_ADMIN_KEY.",
    )
    teaching: bool = _setting(
        False,
        "Let the admin key teach labels by examples, and take them back (/v1/models/NAME/labels), which rewrites the "
        "files of models.",
    )
    max_taught_bytes: int = _setting(
        1_000_000,
        "By how many bytes all that is taught may make model files larger than they were when they were last read at "
        "a start or a reload; more is answered 413.",
        least=0,
    )
    key_rate: float = _setting(
        0.0, "Requests a second of a key to a worker; more are answered 429. 0: no limit.", least=0
    )
    key_burst: int = _setting(0, "Requests of a key at once, after a pause; 0: those of a second.", least=0)
    key_concurrency: int = _setting(
        0, "Requests of a key in progress in a worker; more are answered 429. 0: no limit.", least=0
    )
    trusted_proxy: tuple[str, ...] = _setting(
        (),
        "Address or network of a proxy whose X-Forwarded-For tells who asks; may be repeated. None: whoever is "
        "connected asks.",
    )
    watch_seconds: float = _setting(
        0.0,
        "How often to look whether model or key files have been replaced, and to reload them if so: for clusters, "
        "where a signal reaches one process and a volume all. 0: never.",
        least=0,
    )
    no_auth: bool = _setting(False, "Listen beyond this machine without keys.")
    public_metrics: bool = _setting(False, "Answer /metrics without a key, also where keys are set.")
    allowed_host: tuple[str, ...] = _setting(
        (),
        "Name by which the service may be asked for, without its port; may be repeated; * is any. None: those of this "
        "machine if it listens to that alone and has no keys, else any. Others are answered 421.",
    )
    cors_origin: tuple[str, ...] = _setting((), "Origin whose pages may ask; may be repeated. None: CORS is off.")
    page: bool = _setting(True, "Serve a page at / on which texts can be tried.")
    docs: bool = _setting(False, "Serve /docs, a page that loads its scripts from a public network.")
    log_level: str = _setting(
        "warning", "Least level that is logged, as JSON lines on standard error.", choices=("info", "warning", "error")
    )
    log_requests: bool = _setting(False, "Log a line for each request, without its texts.")
    log_addresses: bool = _setting(
        True, "Log the caller's address with requests and in the audit trail: personal data in many countries."
    )
    log_texts: bool = _setting(False, "With the line, log the texts: personal data, for debugging alone.")
    tracing: bool = _setting(False, "Send OpenTelemetry spans, as OTEL_* variables say (pip install 'textcls[otel]').")
    runtime_dir: Path | None = _setting(
        None, "Writable folder for the files that workers share; by default /dev/shm, or the temporary folder."
    )

    def __post_init__(self) -> None:
        """Refuse settings that do not go together.

        Raises:
            ConfigError: texts are to be logged with lines that are not, a burst has no rate, a proxy no address, or a
                host no name.
        """
        if self.log_texts and not self.log_requests:
            raise ConfigError("--log-texts logs texts with the line of each request: set --log-requests as well.")
        if self.key_burst and not self.key_rate:
            raise ConfigError("--key-burst is how far a key may run ahead of its rate: set --key-rate as well.")
        for proxy in self.trusted_proxy:
            _check_network(proxy)
        for name in self.allowed_host:
            if not _HOST.fullmatch(name):
                raise ConfigError(
                    f"--allowed-host {name!r} is no name of a host: write textcls.example.org, 10.0.0.7, [fd00::7] or "
                    "*, without a scheme and a port."
                )


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"--trusted-proxy {text!r} is no address and no network: write 10.0.0.7 or 10.0.0.0/8, with zeros behind "
            "the prefix."
        ) from error


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(settings: Settings, *, has_keys: bool) -> None:
    """Refuse to answer everybody by oversight.

    Raises:
        ConfigError: the server would listen beyond this machine without keys.
    """
    if not (has_keys or settings.no_auth or is_loopback(settings.host)):
        raise ConfigError(
            f"{settings.host} can be reached by others, and there are no API keys: set --api-keys-file or "
            "TEXTCLS_API_KEYS, or say --no-auth if something in front checks who asks."
        )
