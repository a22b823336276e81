"""Files on web servers, read from their beginning to their end."""

import http.client
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

# A server that is silent for so many seconds has gone.
_SILENCE: Final = 60


def request_to(
    address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> urllib.request.Request:
    """Return a request for what is behind an address, with the name and password that stand in it as RFC 7617 says; no
    other host that the server names gets these.
    """
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(parts._replace(netloc=host).geturl(), body, dict(headers or {}))
    if at:
        request.add_unredirected_header("Authorization", f"Basic {b64encode(unquote_to_bytes(user)).decode()}")
    return request


class WebFile:
    """A file behind an address. What goes wrong is an OSError that says it, FileNotFoundError where there is none."""

    def __init__(self, address: str) -> None:
        with _saying():
            self._answer: http.client.HTTPResponse = urllib.request.urlopen(request_to(address), timeout=_SILENCE)

    def __enter__(self) -> "WebFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()

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
