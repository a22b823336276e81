"""What the requests of a worker share, and the one way in which a request's texts are worked on."""

import asyncio
import logging
import time
from collections.abc import Sized
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from textcls.errors import TextclsError
from textcls.server import answers, memory, metrics
from textcls.server.answers import Answer, Form
from textcls.server.auth import Keys
from textcls.server.gathering import Gathering
from textcls.server.metrics import Counts
from textcls.server.problems import RefusalError
from textcls.server.registry import Generation
from textcls.server.reload import Shelf, counted
from textcls.server.settings import Settings
from textcls.server.tracing import Tracing

# Up to this size a request is answered on the event loop: it takes less than handing it to a thread would. Beyond, it
# would hold up its neighbours. Measured by benchmarks/serving.py.
INLINE_BYTES: Final = 4096
# So is a longer one without explanations that is alone: only who comes in these two milliseconds waits behind it.
ALONE_BYTES: Final = 4 * INLINE_BYTES
_LOGGER: Final = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.25


class Service:
    """One worker's models, keys, counts and bounds. For one event loop."""

    def __init__(
        self,
        generation: Generation,
        settings: Settings,
        *,
        keys: Keys | None = None,
        admin_keys: Keys | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        self.generation = generation
        self.settings = settings
        self.keys = keys or Keys()
        self.admin_keys = admin_keys or Keys()
        self.shelf = shelf
        self.counts = Counts(self.folder)
        self.counts.set(metrics.GENERATION, generation.number)
        self.tracing = Tracing() if settings.tracing else None
        self.draining = False
        self.buffered = 0
        # The requests that uvicorn has begun; the server puts its own set here.
        self.tasks: Sized = ()
        self._gathering = Gathering()
        self._jobs = 0
        self._threads = ThreadPoolExecutor(settings.threads, "textcls")

    @classmethod
    def of(cls, shelf: Shelf, settings: Settings) -> "Service":
        """Return a service of what `shelf` holds.

        Raises:
            ArtifactError: a model cannot be used.
            MissingExtraError: spans are asked for, and what sends them is not installed.
            SurroundingsError: the folder of the shelf cannot be used.
        """
        generation, keys, admin_keys = shelf.load()
        return cls(generation, settings, keys=keys, admin_keys=admin_keys, shelf=shelf)

    @property
    def folder(self) -> Path | None:
        """The folder that the workers share, if there is one."""
        return None if self.shelf is None else self.shelf.folder

    async def answer(self, body: bytes, content_type: bytes, form: Form | None = None) -> Answer:
        """Answer a request, here if it is short, else in a thread, within the deadline.

        Args:
            body: its bytes.
            content_type: of the body.
            form: reads and answers it; None for that of `/v1/classify`.

        Raises:
            TextclsError: the request is refused.
            RefusalError: the service is too busy, or the deadline has passed.
        """
        if len(body) <= INLINE_BYTES:
            if form is not None:
                return form(self.generation, self.settings, body, content_type)
            request, served = answers.read(self.generation, self.settings, body, content_type)
            if len(self.tasks) > 1 and len(request.inputs) == 1 and self.settings.batching:
                return await self._gathering.answer(request, served)
            return answers.complete(request, served)
        if form is None and len(body) <= ALONE_BYTES and self._alone:
            request, served = answers.read(self.generation, self.settings, body, content_type)
            if not request.explain:
                return answers.complete(request, served)
        job = self._submit(body, content_type, form or answers.answer)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self.settings.request_seconds)
        except TimeoutError:
            raise RefusalError(
                504,
                f"The request was not done within request_seconds, which is {self.settings.request_seconds:g}: "
                "send fewer or shorter texts, or try later.",
            ) from None

    @property
    def _alone(self) -> bool:
        return len(self.tasks) <= 1 and not self._jobs

    def _submit(self, body: bytes, content_type: bytes, form: Form) -> "Future[Answer]":
        if self._jobs >= self.settings.max_queue:
            raise RefusalError(
                429,
                f"{self._jobs:,} long requests are waiting, and max_queue is {self.settings.max_queue:,}: try later.",
                retry_after="1",
            )
        self._count_jobs(1)
        loop, begun = asyncio.get_running_loop(), time.perf_counter()
        generation = self.generation

        def work() -> Answer:
            loop.call_soon_threadsafe(self.counts.observe, metrics.WAIT, time.perf_counter() - begun)
            return form(generation, self.settings, body, content_type)

        job = self._threads.submit(work)
        # Not when the caller stops waiting: until the thread is done with it, it is work.
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._count_jobs, -1))
        return job

    def _count_jobs(self, change: int) -> None:
        self._jobs += change
        self.counts.set(metrics.QUEUE, self._jobs)

    async def watch(self) -> None:
        """Take up each new generation, and each word that the service is about to stop, until cancelled.

        Raises:
            SurroundingsError: the folder that the workers share is gone.
        """
        shelf = self.shelf
        if shelf is None:
            return
        # Unequal to any stamp: what was published between the start and now is taken up as well.
        seen: object = None
        while True:
            self.draining = self.draining or shelf.draining
            stamp = shelf.stamp()
            if stamp != seen:
                seen = stamp
                if shelf.number() != self.generation.number:
                    await self._take_up(shelf)
            await asyncio.sleep(_POLL_SECONDS)

    async def _take_up(self, shelf: Shelf) -> None:
        try:
            generation, keys, admin_keys = await asyncio.to_thread(shelf.load)
        except TextclsError as error:
            _LOGGER.error("The new models are not taken up, the old ones go on answering: %s", error)
            return
        # One assignment: a request has either all of the old or all of the new.
        self.generation, self.keys, self.admin_keys = generation, keys, admin_keys
        self.counts.set(metrics.GENERATION, generation.number)
        memory.tidy()
        names = {model.name: model.version for model in generation.models.values()}
        _LOGGER.info("Generation %d is served", generation.number, extra={"models": names})

    async def reload(self) -> tuple[int, int]:
        """Exchange the models of all workers; return the new generation and how many workers serve it.

        Raises:
            RefusalError: the new models cannot be used, and the old ones go on answering.
        """
        if self.shelf is None:
            raise RefusalError(409, "This service has no files to read anew.")
        try:
            with counted(self.counts):
                number = await asyncio.to_thread(self.shelf.publish)
        except TextclsError as error:
            raise RefusalError(409, f"The old models go on answering: {error}") from error
        return number, await self._await_all(number)

    async def _await_all(self, number: int) -> int:
        """Wait until all workers serve generation `number`; return how many do."""
        deadline = time.monotonic() + self.settings.request_seconds
        while True:
            found = metrics.generations(self.folder, self.counts)
            if min(found) >= number or time.monotonic() > deadline:
                return sum(generation >= number for generation in found)
            await asyncio.sleep(_POLL_SECONDS / 5)
