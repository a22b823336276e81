"""Chunks in, chunks with their answers out, in order: in this process, or in several that each load the model."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from typing import Final

from textcls._util import interrupts
from textcls.errors import SurroundingsError
from textcls.jobs.batch.answer_columns import AnswerColumns, Columns
from textcls.jobs.batch.chunks import Item
from textcls.jobs.processes import pool_of
from textcls.model.classifier import Classifier

# Chunks under way per worker: one being answered, one waiting.
AHEAD: Final = 2


def answered(
    classifier: Classifier, chunks: Iterable[list[Item]], answer: AnswerColumns, workers: int = 1
) -> Iterator[tuple[list[Item], list[Columns]]]:
    """Yield `chunks` with the answers of `classifier`, in order.

    Args:
        classifier: answers itself if there is one worker; otherwise each worker loads its file.
        chunks: the chunks, which are read only as far ahead as keeps the workers busy.
        answer: the columns to answer with.
        workers: number of processes.

    Raises:
        SurroundingsError: a worker has died.
    """
    if workers == 1:
        for chunk in chunks:
            yield chunk, answer.of(classifier, [text for text, *_ in chunk])
        return
    pool = pool_of(workers)
    waiting: deque[tuple[list[Item], Future[list[Columns]]]] = deque()
    try:
        for chunk in chunks:
            texts = [text for text, *_ in chunk]
            # Ctrl-C reaches every process of the terminal from its start; this one alone decides what ends.
            with interrupts.held_back_from_processes():
                waiting.append((chunk, pool.submit(_answer, classifier.path, answer, texts)))
            if len(waiting) >= AHEAD * workers:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except BrokenProcessPool as error:
        raise SurroundingsError("A worker process died, perhaps out of memory; use fewer --workers.") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: "deque[tuple[list[Item], Future[list[Columns]]]]") -> tuple[list[Item], list[Columns]]:
    chunk, future = waiting.popleft()
    return chunk, future.result()


@cache
def _loaded(path: Path) -> Classifier:
    return Classifier.load(path)


def _answer(path: Path, answer: AnswerColumns, texts: list[str]) -> list[Columns]:
    return answer.of(_loaded(path), texts)
