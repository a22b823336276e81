"""Files on web servers, read from their beginning to their end."""

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

# A server that is silent for so many seconds has gone.
_SILENCE: Final = 60


_AUTHORIZATION: Final = "Authorization"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to other addresses, with the key for the host that it is for."""

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
    """Return the answer to a request for what is behind an address.

    No other host that the server names gets the key, or the name and password in the address (RFC 7617).

    Args:
        address: the address of a web server.
        seconds: that it may be silent.
        body: what is sent to it; None only asks.
        kind: what the body is.
        key: to be presented.

    Raises:
        ConfigError: there are a key and a password.
        OSError: there is no answer, HTTPError where it is an error.
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
        # What it says repeats the address, and with it a key.
        raise OSError("the address holds a space, or another sign that is %XX there, or no port") from error
    except http.client.HTTPException as error:
        raise OSError(str(error) or type(error).__name__) from error
    return found


class WebFile:
    """A file behind an address. What goes wrong is an OSError that says it, FileNotFoundError where there is none."""

    def __init__(self, address: str) -> None:
        with _saying():
            self._answer: http.client.HTTPResponse = answer_of(address, _SILENCE)

    def __enter__(self) -> "WebFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

    @property
    def head(self) -> HTTPMessage:
        """What stands before its bytes."""
        return self._answer.headers

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most so many."""
        with _saying():
            return self._whole(self._answer.read(size), size)

    def read1(self, size: int) -> bytes:
        """Return the next bytes as soon as there are any, at most so many; none at the end."""
        with _saying():
            return self._whole(self._answer.read1(size), size)

    def _whole(self, found: bytes, size: int) -> bytes:
        # Of a body that ends before its Content-Length, http.client tells only whoever reads all of it at once.
        if not found and size and self._answer.length:
            raise http.client.IncompleteRead(found, self._answer.length)
        return found


def size_and_time(address: str) -> dict[str, Any]:
    """Return how many `bytes` a file has, and when it `changed`, in seconds of the epoch, as far as its server says.

    Raises:
        OSError: there is no answer, or an error.
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
