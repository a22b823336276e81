"""The state that all requests of a worker share, and the single path by which their texts are answered."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect

from textcls.errors import TextclsError, TooLargeError
from textcls.server.admission.auth import Keys
from textcls.server.admission.budget import Budget, Share
from textcls.server.admission.key_limits import KeyLimits
from textcls.server.admission.origins import Origins
from textcls.server.inference import answers, micro_batching
from textcls.server.inference.answers import EncodedAnswer, Request
from textcls.server.inference.micro_batching import MicroBatcher
from textcls.server.models import loading
from textcls.server.models.registry import Generation
from textcls.server.models.reload import counted
from textcls.server.models.store import GenerationStore, ReloadResult
from textcls.server.monitoring import logs, metrics
from textcls.server.monitoring.audit import SIGNAL, Caller, Refusals
from textcls.server.monitoring.drift import DriftCounts
from textcls.server.monitoring.metrics import Counts
from textcls.server.monitoring.tracing import Tracing
from textcls.server.problems import RefusalError
from textcls.server.settings import Settings
from textcls.server.system import memory

# A body of up to this size is read on the event loop, which is faster than handing it to a thread. A larger one would
# delay other requests. Measured by benchmarks/serving.py.
INLINE_BYTES: Final = 4096
# The limit for a request that is alone on the worker.
ALONE_BYTES: Final = 4 * INLINE_BYTES
# While a body is parsed it is in memory once as bytes and twice as text, and a single wide character makes each text
# take four bytes per character: nine times its length, of which 1.25 are already reserved.
_READING: Final = 7.2
# A request that holds more leaves so much free memory behind that it is returned to the system at once.
_LARGE_BYTES: Final = 32_000_000
_LOGGER: Final = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.25
# Delay before retrying to load models that could not be loaded, perhaps for lack of memory.
_RETRY_SECONDS: Final = 10.0
_T = TypeVar("_T")


class Service:
    """One worker's models, keys, counts and limits, for use in a single event loop."""

    def __init__(
        self,
        generation: Generation,
        settings: Settings,
        store: GenerationStore,
        *,
        keys: Keys | None = None,
        admin_keys: Keys | None = None,
    ) -> None:
        self.generation = generation
        self.settings = settings
        self.keys = keys or Keys()
        self.admin_keys = admin_keys or Keys()
        self.origins = Origins(settings)
        self.key_limits = KeyLimits.of(settings)
        self.refusals = Refusals()
        self.store = store
        self.counts = Counts(store.folder)
        self.counts.set(metrics.GENERATION, generation.number)
        self.drift = DriftCounts(self.counts, settings.drift_window, settings.workers)
        self._watch_drift()
        self.tracing = Tracing() if settings.tracing else None
        self.draining = False
        self.budget = Budget(settings.max_held_bytes)
        # Requests in progress, and the open connections: the server replaces this by its own set.
        self._requests = 0
        self.connections: Sized = ()
        self._batcher = MicroBatcher(
            settings.request_seconds, together=settings.batching, connections=lambda: len(self.connections)
        )
        self._jobs = 0
        self._lines_dropped = 0
        self._threads = ThreadPoolExecutor(settings.threads, "textcls")
        # Searches may take seconds, so they have a thread of their own.
        self._searches = ThreadPoolExecutor(1, "textcls-search")

    @classmethod
    def of(cls, store: GenerationStore, settings: Settings) -> "Service":
        """Return a service for the contents of `store`.

        Raises:
            ArtifactError: a model cannot be used.
            MissingExtraError: tracing is enabled, and the package that sends spans is not installed.
            SurroundingsError: the folder of the store cannot be used.
        """
        generation, keys, admin_keys = store.load()
        return cls(generation, settings, store, keys=keys, admin_keys=admin_keys)

    def begin_request(self) -> None:
        """Count a request as in progress."""
        self._requests += 1
        self.counts.add(metrics.IN_PROGRESS)

    def end_request(self) -> None:
        """Count a request as no longer in progress."""
        self._requests -= 1
        self.counts.add(metrics.IN_PROGRESS, by=-1)

    async def answer(
        self, read: Callable[[], Request], size: int, share: Share, gone: Callable[[], Awaitable[None]]
    ) -> EncodedAnswer:
        """Answer a request within the deadline: on the event loop if it is short, else in a thread.

        Args:
            read: parses and returns the request.
            size: size of the body in bytes.
            share: the request's share of the memory budget.
            gone: waits until the client has disconnected.

        Raises:
            ClientDisconnect: the client has disconnected.
            TextclsError: the request is refused.
            RefusalError: the service is too busy, or the deadline has passed.
        """
        try:
            alone = self._requests <= 1 and not self._jobs
            if size <= INLINE_BYTES or (size <= ALONE_BYTES and alone):
                request = read()
                microseconds = self._within_deadline(request)
                if microseconds > (micro_batching.TURN_ALONE if alone else micro_batching.TURN):
                    return await self._in_thread(lambda: request, share, gone)
                answer = self._batcher.answer_alone(request) if alone else None
                return answer or await self._batcher.answer(request, microseconds)
            share.hold(size, body=True)
            return await self._in_thread(read, share, gone)
        except TimeoutError:
            raise RefusalError(
                504,
                f"The request was not done within request_seconds, which is {self.settings.request_seconds:g}: "
                "send fewer or shorter texts, or try later.",
            ) from None

    def _within_deadline(self, request: Request) -> float:
        """Return an estimate of how long a request takes, in microseconds.

        Raises:
            TooLargeError: it cannot finish in time: the thread would be busy long after the client has given up.
        """
        microseconds = request.microseconds
        if microseconds > 1e6 * self.settings.request_seconds:
            raise TooLargeError(
                f"The answer would take some {microseconds / 1e6:,.1f} seconds, and request_seconds is "
                f"{self.settings.request_seconds:g}: send fewer or shorter texts, or explain fewer labels."
            )
        return microseconds

    async def _in_thread(
        self, read: Callable[[], Request], share: Share, gone: Callable[[], Awaitable[None]]
    ) -> EncodedAnswer:
        """Answer in a thread; searches have a separate one, so that no other request waits behind them.

        Raises:
            ClientDisconnect: the client has disconnected. Work that no thread has started yet is cancelled.
            TimeoutError: the deadline has passed.
        """

        def begin() -> EncodedAnswer | Request:
            share.hold(int(_READING * share.held))
            request = read()
            self._within_deadline(request)
            share.hold(request.bytes)
            return request if request.searches else complete(request)

        def complete(request: Request) -> EncodedAnswer:
            large = share.held > _LARGE_BYTES
            answer = answers.complete(request)
            if large:
                memory.return_holes()
            share.hold(len(answer.body))
            return answer

        async with asyncio.timeout(self.settings.request_seconds):
            found = await _unless_gone(self._submit(begin, self._threads, share), gone)
            if isinstance(found, Request):
                return await _unless_gone(self._submit(partial(complete, found), self._searches, share), gone)
            return found

    def _submit(self, work: Callable[[], _T], pool: ThreadPoolExecutor, share: Share) -> "Future[_T]":
        if self._jobs >= self.settings.max_queue:
            raise RefusalError(
                429,
                f"{self._jobs:,} long requests are waiting, and max_queue is {self.settings.max_queue:,}: try later.",
                retry_after="1",
            )
        self._count_jobs(1)
        share.use()
        loop, waited, submitted = asyncio.get_running_loop(), list[float](), time.perf_counter()

        def timed() -> _T:
            # Reported only when the work is done: waking the loop now would only take the interpreter from this thread.
            waited.append(time.perf_counter() - submitted)
            return work()

        def done() -> None:
            self._count_jobs(-1)
            self.counts.observe(metrics.WAIT, waited)
            share.close()

        job = pool.submit(timed)
        # Not when the caller stops waiting: until the thread has finished, the job takes time and holds memory.
        job.add_done_callback(lambda _: _call_on(loop, done))
        return job

    def _count_jobs(self, change: int) -> None:
        self._jobs += change
        self.counts.set(metrics.QUEUE, self._jobs)

    async def watch(self) -> None:
        """Load each new generation, and notice when the service is about to stop, until cancelled.

        Raises:
            SurroundingsError: the workers' shared folder is gone.
        """
        store = self.store
        # Unequal to any stamp, so that a generation published since the start is loaded as well.
        seen: object = None
        failed, again = seen, 0.0
        while True:
            self._count_held()
            self.draining = self.draining or store.draining
            stamp = store.stamp()
            if stamp != seen and (stamp != failed or time.monotonic() >= again):
                if store.number() == self.generation.number or await self._take_up():
                    seen = stamp
                else:
                    failed, again = stamp, time.monotonic() + _RETRY_SECONDS
            await asyncio.sleep(_POLL_SECONDS)

    def _count_held(self) -> None:
        self.counts.set(metrics.HELD, self.budget.held)
        before, self._lines_dropped = self._lines_dropped, logs.dropped()
        self.counts.add(metrics.LINES_DROPPED, by=self._lines_dropped - before)

    async def _take_up(self) -> bool:
        """Load the latest generation; return whether that succeeded."""
        try:
            generation, keys, admin_keys = await asyncio.to_thread(self.store.load, self.generation.models.values())
        except TextclsError as error:
            _LOGGER.error("The new models are not taken up, the old ones go on answering: %s", error)
            return False
        except Exception as error:
            message = "The new models are not taken up (%s), the old ones go on answering."
            _LOGGER.error(message, type(error).__name__, extra={"where": logs.places(error)})
            return False
        # One assignment: a request sees either all of the old or all of the new generation.
        self.generation, self.keys, self.admin_keys = generation, keys, admin_keys
        self._watch_drift()
        self.counts.set(metrics.GENERATION, generation.number)
        memory.trim()
        names = {model.name: model.version for model in generation.models.values()}
        _LOGGER.info("Generation %d is served", generation.number, extra={"models": names})
        return True

    def _watch_drift(self) -> None:
        self.drift.take_up({name: model.bins for name, model in self.generation.models.items()})

    async def reload(self, caller: Caller = SIGNAL) -> tuple[ReloadResult, int]:
        """Reload the models of all workers; return the result and how many workers serve it.

        Args:
            caller: who asked, for the audit trail.

        Raises:
            RefusalError: the new models cannot be used, and the old ones continue to answer.
        """
        try:
            with counted(self.counts, self.store, caller):
                done = await asyncio.wrap_future(loading.in_thread(self.store.publish))
        except TextclsError as error:
            # A file name may not be valid UTF-8.
            message = str(error).encode(errors="backslashreplace").decode()
            raise RefusalError(409, f"The old models go on answering: {message}") from error
        return done, await self._await_all(done.number)

    async def _await_all(self, number: int) -> int:
        """Wait until all workers serve generation `number` or the time is up; return how many do."""
        deadline = time.monotonic() + self.settings.request_seconds
        while True:
            found = metrics.generations(self.store.folder)
            if min(found) >= number or time.monotonic() > deadline:
                return sum(generation >= number for generation in found)
            await asyncio.sleep(_POLL_SECONDS / 5)


async def _unless_gone(job: "Future[_T]", gone: Callable[[], Awaitable[None]]) -> _T:
    """Wait for a job as long as the client is connected, so that no queued work is done for clients that gave up."""
    done, left = asyncio.wrap_future(job), asyncio.ensure_future(gone())
    try:
        await asyncio.wait((done, left), return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            left.result()
            raise ClientDisconnect
        return done.result()
    finally:
        done.cancel()
        left.cancel()


def _call_on(loop: asyncio.AbstractEventLoop, done: Callable[[], None]) -> None:
    """Call `done` on a loop, or directly if that is closed, as when a test uses a new loop for each request."""
    try:
        loop.call_soon_threadsafe(done)
    except RuntimeError:
        done()
