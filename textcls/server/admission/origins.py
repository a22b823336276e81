"""Which host names a server without keys answers to, and which origins may send requests to it.

A browser on the same machine can reach such a server, and sends requests on behalf of any page that it shows. A page
can make its own host name point to 127.0.0.1 (DNS rebinding), which the header `Host` reveals, or send a form or plain
text to another origin, which `Sec-Fetch-Site` and `Origin` reveal. With keys neither works: the page has none.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from textcls.server.problems import RefusalError
from textcls.server.settings import Settings, is_loopback

_HERE: Final = ("localhost", "127.0.0.1", "[::1]")
_OWN: Final = (b"same-origin", b"none")


class Origins:
    """The host names and origins that the settings allow."""

    def __init__(self, settings: Settings) -> None:
        named = {name.lower() for name in settings.allowed_host}
        own = settings.host.lower()
        self._always = bool(named)
        self._names: frozenset[bytes] | None = None
        if "*" not in named and (named or is_loopback(own)):
            names = {*_HERE, f"[{own}]" if ":" in own else own, *named}
            self._names = frozenset(name.encode() for name in names)
        self._origins = frozenset(origin.encode() for origin in settings.cors_origin)

    def check(self, method: str, headers: Mapping[bytes, bytes], *, has_keys: bool) -> None:
        """Refuse a request for another host, or from a page of another origin.

        Raises:
            RefusalError: it is one.
        """
        if has_keys and not self._always:
            return
        host = headers.get(b"host", b"")
        if self._names is not None and not is_allowed(host, self._names):
            raise RefusalError(
                421,
                "This server does not answer to that host name: use localhost, or allow the name with --allowed-host.",
            )
        if has_keys or method != "POST":
            return
        if is_foreign(host, headers.get(b"origin", b""), headers.get(b"sec-fetch-site", b""), self._origins):
            raise RefusalError(
                403, "Pages of other origins may not call a server without keys: allow their origin with --cors-origin."
            )


@lru_cache(maxsize=64)
def is_allowed(host: bytes, names: frozenset[bytes]) -> bool:
    """Return whether a `Host` header, which may have a port, is one of these names.

    Args:
        host: the header.
        names: in lower case and without a port; IPv6 addresses in brackets.
    """
    name, colon, port = host.lower().rpartition(b":")
    # A colon within brackets belongs to the address.
    return (name if colon and port.isdigit() and not port.endswith(b"]") else host.lower()) in names


def is_foreign(host: bytes, origin: bytes, site: bytes, allowed: Iterable[bytes] = ()) -> bool:
    """Return whether a request comes from a page of another origin, as far as the browser reveals it.

    Args:
        host: the header `Host`.
        origin: the header `Origin`; empty if there is none.
        site: the header `Sec-Fetch-Site`, which browsers send to servers that they trust; empty if there is none.
        allowed: origins whose pages may send requests; `*` for any.
    """
    if not (site or origin) or site in _OWN:
        return False
    if origin in allowed or b"*" in allowed:
        return False
    return bool(site) or origin.partition(b"://")[2].lower() != host.lower()
