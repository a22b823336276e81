"""An answer whose bytes are there: nothing is encoded or looked up any more."""

from collections.abc import Iterable

from starlette.responses import Response


class Ready(Response):
    """An answer, ready to be sent.

    Args:
        body: the bytes.
        status: of HTTP.
        kind: its content type.
        headers: what it needs beyond type, length and id.
    """

    def __init__(
        self,
        body: bytes,
        status: int = 200,
        *,
        kind: bytes = b"application/json",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        # Not by Starlette's, which writes each header anew: one is made for every request.
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *headers]
