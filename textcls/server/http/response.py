"""A response whose bytes are complete: nothing is left to encode or look up."""

from collections.abc import Iterable

from starlette.responses import Response


class Ready(Response):
    """An answer, ready to be sent.

    Args:
        body: the bytes.
        status: the HTTP status.
        kind: the content type.
        headers: headers other than those of type, length and id.
    """

    def __init__(
        self,
        body: bytes,
        status: int = 200,
        *,
        kind: bytes = b"application/json",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        # Not through Starlette's constructor, which encodes each header again, for every request.
        self.body, self.status_code, self.background = body, status, None
        self.raw_headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *headers]
