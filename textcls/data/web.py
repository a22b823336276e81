"""Files on web servers, read from beginning to end."""

import http.client
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage
from typing import IO, Any, Final
from urllib.parse import unquote_to_bytes, urlsplit

from textcls.errors import ConfigError

# Seconds of silence after which a server is considered gone.
_SILENCE: Final = 60


_AUTHORIZATION: Final = "Authorization"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and sends the key only to the host that it is for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and (key := req.unredirected_hdrs.get(_AUTHORIZATION)):
            before, after = urlsplit(req.full_url), urlsplit(newurl)
            if after.netloc == before.netloc and after.scheme in (before.scheme, "https"):
                found.add_unredirected_header(_AUTHORIZATION, key)
        return found


def answer_of(
    address: str, seconds: float, body: bytes | None = None, kind: str | None = None, key: str | None = None
) -> http.client.HTTPResponse:
    """Return the answer to a request to an address.

    Hosts that the server redirects to get neither the key nor the name and password in the address (RFC 7617).

    Args:
        address: the address on a web server.
        seconds: how long the server may be silent.
        body: what is sent to it; None sends a GET request.
        kind: the content type of the body.
        key: the key to present.

    Raises:
        ConfigError: there are both a key and a name in the address.
        OSError: there is no answer; HTTPError if the answer is an error.
    """
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    if at and key:
        raise ConfigError(f"There are a key and a name in the address of {host}: leave one of them out.")
    request = urllib.request.Request(parts._replace(netloc=host).geturl(), body, {"Content-Type": kind} if kind else {})
    if at:
        whole = unquote_to_bytes(user if ":" in user else f"{user}:")
        request.add_unredirected_header(_AUTHORIZATION, f"Basic {b64encode(whole).decode()}")
    elif key:
        request.add_unredirected_header(_AUTHORIZATION, f"Bearer {key}")
    try:
        found: http.client.HTTPResponse = urllib.request.build_opener(_Redirects).open(request, timeout=seconds)
    except http.client.InvalidURL as error:
        # Its message repeats the address, and with it a key.
        raise OSError("the address holds a space, or another sign that is %XX there, or no port") from error
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    return found


class WebFile:
    """A file at an address; every failure is an OSError that explains it, FileNotFoundError if there is no file."""

    def __init__(self, address: str) -> None:
        with _saying():
            self._answer: http.client.HTTPResponse = answer_of(address, _SILENCE)

    def __enter__(self) -> "WebFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

    @property
    def head(self) -> HTTPMessage:
        """The headers of the answer."""
        return self._answer.headers

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most `size`."""
        with _saying():
            return self._whole(self._answer.read(size), size)

    def read1(self, size: int) -> bytes:
        """Return the next bytes as soon as there are any, at most `size`; none at the end."""
        with _saying():
            return self._whole(self._answer.read1(size), size)

    def _whole(self, found: bytes, size: int) -> bytes:
        # http.client reports a body that ends before its Content-Length only if all of it is read at once.
        if not found and size and self._answer.length:
            raise http.client.IncompleteRead(found, self._answer.length)
        return found


def size_and_time(address: str) -> dict[str, Any]:
    """Return how many `bytes` a file has, and when it `changed`, in seconds since the epoch, if the server says so.

    Raises:
        OSError: there is no answer, or the answer is an error.
    """
    found: dict[str, Any] = {}
    with WebFile(address) as file:
        head = file.head
    if (length := head.get("Content-Length", "")).isdecimal():
        found["bytes"] = int(length)
    with suppress(ValueError):
        found["changed"] = parsedate_to_datetime(head.get("Last-Modified", "")).timestamp()
    return found


@contextmanager
def _saying() -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        raise (FileNotFoundError if error.code == 404 else OSError)(str(error)) from error
    except urllib.error.URLError as error:
        raise OSError(getattr(error.reason, "strerror", None) or str(error.reason)) from error
    except http.client.IncompleteRead as error:
        early = "early" if error.expected is None else f"{error.expected:,} bytes early"
        raise OSError(f"it ends {early}; try again") from error
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
