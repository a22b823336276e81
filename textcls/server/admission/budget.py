"""The memory budget of a worker's requests, in bytes.

One account for bodies that arrive or wait, for the model's working memory, and for answers until they are read: without
it, the worker might run out of memory and be killed.
"""

from threading import Lock
from typing import Final

from textcls.server.problems import RefusalError

# Up to this size nothing is counted: a connection holds at most this much, and the number of connections is limited.
# The protocol accepts as much from the application before making it wait.
UNCOUNTED: Final = 16_384
# The share of the budget for bodies, so that there is room to answer those that have arrived.
_FOR_BODIES: Final = 0.5
# A growing body has spare room behind it, and gaps beside it left by parts of others: a quarter, as measured.
_LOOSE: Final = 1.25


class Budget:
    """A limit on the bytes held, and on those held for bodies. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_bodies = int(most * _FOR_BODIES)
        self.held = 0
        self._bodies = 0
        self._lock = Lock()

    def change(self, by: int, bodies: int) -> None:
        """Reserve `by` more bytes, or release some if it is negative; `bodies` of them are for bodies.

        Raises:
            RefusalError: the limit would be exceeded.
        """
        with self._lock:
            over = by > 0 and self.held + by > self.most
            if over or (bodies > 0 and self._bodies + bodies > self.most_bodies):
                raise RefusalError(
                    429,
                    f"This worker holds {self.held:,} bytes for requests, this one needs {by:,} more, and "
                    f"max_held_bytes is {self.most:,}, half of it for bodies: try later.",
                    retry_after="1",
                )
            self.held += by
            self._bodies += bodies


class Share:
    """One request's share of a budget, released when all of its users have closed it."""

    __slots__ = ("_bodies", "_budget", "_users", "held")

    def __init__(self, budget: Budget) -> None:
        self.held = self._bodies = 0
        self._budget = budget
        self._users = 1

    def hold(self, held: int, *, body: bool = False) -> None:
        """Set the number of bytes held, for a body of this size or for work on it.

        Raises:
            RefusalError: too much is held already (429), or it can never be held (413).
        """
        held = int(_LOOSE * held) if body else held
        most = self._budget.most_bodies if body else self._budget.most
        if held > most:
            raise RefusalError(
                413,
                f"About {held:,} bytes are needed to answer this request, and of max_held_bytes, which is "
                f"{self._budget.most:,}, it may take {most:,}: send fewer or shorter texts.",
            )
        bodies = held if body else 0
        self._budget.change(held - self.held, bodies - self._bodies)
        self.held, self._bodies = held, bodies

    def use(self) -> None:
        """Keep the share until `close` has been called once more."""
        self._users += 1

    def close(self) -> None:
        """Release the share, unless it has another user."""
        self._users -= 1
        if self.held and not self._users:
            self._budget.change(-self.held, -self._bodies)
            self.held = self._bodies = 0
