"""The operator's settings, in one table that is read like the options of every command."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from textcls._util.options import Choice, FileName, Flag, Integer, Name, Number, Several, check_options, option
from textcls.errors import ConfigError

ENVIRONMENT: Final = "TEXTCLS_SERVE_"
_ORIGIN: Final = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[!-.0-~]+")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]|\*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one request. The attributes are described where they are defined."""

    max_inputs: int = option(Integer(1), 64, "Most texts in a request (413 beyond).")
    max_characters: int = option(Integer(1), 100_000, "Most characters in a text (413 beyond).")
    max_body_bytes: int = option(Integer(1), 2_000_000, "Most bytes in a request body (413 beyond, while it is read).")
    max_explained: int = option(
        Integer(1), 250_000, "Most tokens x labels in an explained answer, at about 25 bytes each (413 beyond)."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Limits):
    """All settings of `textcls serve`. The attributes are described where they are defined."""

    host: str = option(Name(), "127.0.0.1", "Address to listen on; 0.0.0.0 means all of them, and needs keys.")
    port: int = option(Integer(0, 65535), 8000, "Port to listen on; 0 picks a free one.")
    probe_port: int = option(
        Integer(0, 65535),
        0,
        "Second port for /livez, /readyz and /metrics, without keys, which answers however busy the first is. "
        "For monitoring: let nothing else reach it. 0: none.",
    )
    workers: int = option(Integer(1), 1, "Worker processes; with 2 or more, one that dies is replaced.")
    threads: int = option(
        Integer(1),
        1,
        "Threads per worker for long requests; those of up to 2 ms (4 ms if alone) stay on the event loop, and "
        "searches for a counterfactual have a thread of their own.",
    )
    batching: bool = option(
        Flag(),
        True,
        "Answer short requests that arrive at the same moment as one batch: faster under load, but scores may "
        "differ in the seventh digit depending on what else arrives.",
    )
    max_queue: int = option(Integer(1), 64, "Most long requests waiting or running in a worker (429 beyond).")
    max_held_bytes: int = option(
        Integer(1_000_000),
        128_000_000,
        "Most bytes, roughly, that a worker holds for its requests: bodies, the model's working memory, answers "
        "not yet taken (429 beyond; 413 for a request that never fits). Half of it is for bodies.",
    )
    max_connections: int = option(
        Integer(1),
        1000,
        "Most open connections per worker; beyond, the connection idle for longest is closed, and if none is "
        "idle, the new one gets 429.",
    )
    request_seconds: float = option(
        Number(0.01, most=1e9),
        10.0,
        "Seconds that a long request may wait and run; then 504. What would take longer by itself gets 413.",
    )
    receive_seconds: float = option(
        Number(0.01, most=1e9),
        10.0,
        "Seconds that a request may take to arrive, or an answer to be read; then 408, or the connection is closed.",
    )
    keep_alive_seconds: int = option(Integer(1), 30, "Seconds that an idle connection is kept.")
    drain_seconds: float = option(
        Number(0), 0.0, "Seconds after SIGTERM during which /readyz says 503 while new connections are still served."
    )
    load_seconds: float = option(
        Number(0.01, most=1e6),
        60.0,
        "Seconds that loading and testing the models may take, at start and at a reload; then it fails.",
    )
    max_model_bytes: int = option(
        Integer(1),
        2_000_000_000,
        "Most bytes in a model file; larger ones are refused before they are read. Models are held in memory.",
    )
    same_labels: bool = option(
        Flag(),
        False,
        "Refuse a reload that changes labels, task or columns of a model, or the default, or lacks one.",
    )
    stop_seconds: int = option(
        Integer(0), 30, "Seconds after drain_seconds during which requests in flight may finish."
    )
    api_keys_file: Path | None = option(
        FileName(),
        None,
        "File of API keys, one NAME:KEY or KEY per line; all are valid. Or the variable TEXTCLS_API_KEYS. Logs "
        "and metrics show the name.",
    )
    admin_key_file: Path | None = option(
        FileName(),
        None,
        "File of the key for POST /v1/admin/reload. Or the variable TEXTCLS_ADMIN_KEY.",
    )
    key_rate: float = option(Number(0), 0.0, "Most requests per second, key and worker (429 beyond). 0: no limit.")
    key_burst: int = option(
        Integer(0), 0, "Most requests that a key may send at once after a pause; 0: one second's worth."
    )
    key_concurrency: int = option(
        Integer(0), 0, "Most requests in progress per key and worker (429 beyond). 0: no limit."
    )
    trusted_proxy: tuple[str, ...] = option(
        Several(Name()),
        (),
        "Address or network of a proxy whose X-Forwarded-For names the caller; may be repeated. None: the "
        "caller is whoever is connected.",
    )
    watch_seconds: float = option(
        Number(0),
        0.0,
        "Seconds between checks for replaced model or key files, which are then reloaded: for clusters, where a "
        "signal reaches one process and a volume all. 0: never.",
    )
    drift_window: int = option(
        Integer(0),
        1000,
        "Latest texts of a model, at least, whose answers /metrics holds against the held-out rows of its training; "
        "0: none.",
    )
    no_auth: bool = option(Flag(), False, "Allow listening beyond this machine without keys.")
    public_metrics: bool = option(Flag(), False, "Answer /metrics without a key even if keys are set.")
    allowed_host: tuple[str, ...] = option(
        Several(Name()),
        (),
        "Host name, without port, under which the service answers; may be repeated; * is any. None: this "
        "machine's names if it listens only there and has no keys, else any. Others get 421.",
    )
    cors_origin: tuple[str, ...] = option(
        Several(Name()), (), "Origin whose pages may send requests; may be repeated. None: CORS is off."
    )
    page: bool = option(Flag(), True, "Serve a page at / to try texts on.")
    docs: bool = option(Flag(), False, "Serve /docs, a page that loads its scripts from a public network.")
    log_level: str = option(
        Choice(("info", "warning", "error")), "warning", "Lowest level to log, as JSON lines on standard error."
    )
    log_requests: bool = option(Flag(), False, "Log a line per request, without its texts.")
    log_addresses: bool = option(
        Flag(), True, "Log the caller's address with requests and in the audit trail: personal data in many countries."
    )
    log_texts: bool = option(Flag(), False, "Log the texts as well: personal data, for debugging only.")
    tracing: bool = option(
        Flag(), False, 'Send OpenTelemetry spans, configured by OTEL_* variables (pip install "textcls[otel]").'
    )
    runtime_dir: Path | None = option(
        FileName(), None, "Writable folder for files that workers share; by default /dev/shm, or the temporary folder."
    )

    def __post_init__(self) -> None:
        """Refuse settings that are invalid or do not fit together.

        Raises:
            ConfigError: a value is not allowed, texts are to be logged but not requests, a burst is set without a
                rate, or a proxy, origin or host name is invalid.
        """
        check_options(self)
        if self.log_texts and not self.log_requests:
            raise ConfigError("--log-texts adds the texts to the line of each request: set --log-requests as well.")
        if self.key_burst and not self.key_rate:
            raise ConfigError("--key-burst is how far a key may run ahead of its rate: set --key-rate as well.")
        for proxy in self.trusted_proxy:
            _check_network(proxy)
        for origin in self.cors_origin:
            if not _ORIGIN.fullmatch(origin):
                raise ConfigError(
                    f"--cors-origin {origin!r} is not an origin: write https://www.example.org or "
                    "http://localhost:3000, without a path, or *."
                )
        for name in self.allowed_host:
            if not _HOST.fullmatch(name):
                raise ConfigError(
                    f"--allowed-host {name!r} is not a host name: write textcls.example.org, 10.0.0.7, [fd00::7] "
                    "or *, without a scheme and a port."
                )


def _check_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(
            f"--trusted-proxy {text!r} is not an address or network: write 10.0.0.7 or 10.0.0.0/8, with zeros "
            "behind the prefix."
        ) from error


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(settings: Settings, *, has_keys: bool) -> None:
    """Refuse to serve other machines without keys by oversight.

    Raises:
        ConfigError: the server would listen beyond this machine without keys.
    """
    if not (has_keys or settings.no_auth or is_loopback(settings.host)):
        raise ConfigError(
            f"Other machines can reach {settings.host}, and there are no API keys: set --api-keys-file or "
            "TEXTCLS_API_KEYS, or add --no-auth if something in front authenticates callers."
        )
