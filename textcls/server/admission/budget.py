"""What a worker holds for its requests, in bytes, and how much that may be.

One account for bodies that arrive or wait, for what the model computes with, and for answers until they are taken: what
it refuses would have to be killed for otherwise.
"""

from threading import Lock
from typing import Final

from textcls.server.problems import RefusalError

# What is not larger is not counted: each connection holds so much at most, and there are only so many connections. The
# protocol takes as much from the application before it makes it wait.
UNCOUNTED: Final = 16_384
# Bodies may take up so much of all, so that there is room to answer those that are here.
_FOR_BODIES: Final = 0.5
# A body that has grown has room behind it, and holes beside it that the parts of others have left: measured, a quarter.
_LOOSE: Final = 1.25


class Budget:
    """So many bytes may be held, and so many of them for bodies. Safe to share between threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_bodies = int(most * _FOR_BODIES)
        self.held = 0
        self._bodies = 0
        self._lock = Lock()

    def change(self, by: int, bodies: int) -> None:
        """Hold `by` bytes more, or less if it is negative, and for bodies so many more of them.

        Raises:
            RefusalError: more would be held than may be.
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
    """What one request holds of a budget. It is given back when all of its users have closed it."""

    __slots__ = ("_bodies", "_budget", "_users", "held")

    def __init__(self, budget: Budget) -> None:
        self.held = self._bodies = 0
        self._budget = budget
        self._users = 1

    def hold(self, held: int, *, body: bool = False) -> None:
        """Hold `held` bytes from now on instead of what was held before, for a body of so many or what is made of it.

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
        """Keep what is held until `close` has been called once more."""
        self._users += 1

    def close(self) -> None:
        """Give back what is held, unless somebody else uses it."""
        self._users -= 1
        if self.held and not self._users:
            self._budget.change(-self.held, -self._bodies)
            self.held = self._bodies = 0
