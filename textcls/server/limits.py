"""What one request may ask for, and the middleware that holds the limit of the body while it is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textcls.errors import TooLargeError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one request.

    Attributes:
        max_inputs: texts in one request.
        max_characters: characters (Unicode code points) of one text.
        max_body_bytes: bytes of the body, as sent.
    """

    max_inputs: int = 64
    max_characters: int = 100_000
    max_body_bytes: int = 2_000_000

    def check(self, texts: Sequence[str]) -> None:
        """Refuse more or longer texts than allowed.

        Raises:
            TooLargeError: the text names the limit.
        """
        if len(texts) > self.max_inputs:
            raise TooLargeError(
                f"inputs holds {len(texts):,} texts, and max_inputs is {self.max_inputs:,}: send several requests."
            )
        for i, text in enumerate(texts):
            if len(text) > self.max_characters:
                raise TooLargeError(
                    f"inputs[{i}] has {len(text):,} characters, and max_characters is {self.max_characters:,}: "
                    "shorten it or split it."
                )


class BodyLimit:
    """ASGI middleware: a body beyond the limit is answered 413 as soon as that is known, and never held in memory.

    A declared length is refused before anything is read; an undeclared (chunked) one when the limit is passed.
    """

    def __init__(self, app: "ASGIApp", limits: Limits) -> None:
        self._app = app
        self._limit = limits.max_body_bytes

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass the request on, counting its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _declared_length(scope) > self._limit:
            await self._refuse(scope, receive, send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        seen = 0
        refused = False

        async def counted_receive() -> "Message":
            nonlocal seen, refused
            if refused:
                return {"type": "http.disconnect"}
            message = await receive()
            seen += len(message.get("body", b""))
            if seen <= self._limit:
                return message
            refused = True
            await self._refuse(scope, receive, send)
            return {"type": "http.disconnect"}

        async def guarded_send(message: "Message") -> None:
            if not refused:
                await send(message)

        await self._app(scope, counted_receive, guarded_send)

    async def _refuse(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        from textcls.server.problems import problem

        message = (
            f"The body is beyond max_body_bytes, which is {self._limit:,}: send fewer or shorter texts in a request."
        )
        await problem(413, message)(scope, receive, send)


def _declared_length(scope: "Scope") -> int:
    return next((int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), 0)
