"""Loops compiled ahead, in a process beside that of the first training on a machine.

Numba compiles a function at a time in a process. A training that begins with the first function it needs meets another
process somewhere on the way that begins with the last one; each finds what the other has kept.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numba
import numpy as np

from textcls_training.fit.compiled import step
from textcls_training.fit.compiled.arrays import Dense, Rates, Scratch, Table, Targets, Texts
from textcls_training.fit.compiled.head import back_through_head, loss_of, read_out
from textcls_training.fit.one_vs_rest.features import Features
from textcls_training.fit.one_vs_rest.solver import answers

# Where the script stands is no place to import from: a file there may be called as a module is.
_COMMAND: Final = ("-P", "-c", f"from {__name__} import compile_ahead; compile_ahead()")


@contextmanager
def compiling_ahead() -> Iterator[Callable[[], None]]:
    """Give a function that starts the other process, where that is of use; with the block the process is ended."""
    with ExitStack() as stack:

        def start() -> None:
            if numba.config.NUMBA_NUM_THREADS > 1 and step.train_batches.stats.cache_path is not None:  # type: ignore[attr-defined]
                quiet = subprocess.DEVNULL
                process = subprocess.Popen([sys.executable, *_COMMAND], stdin=quiet, stdout=quiet, stderr=quiet)
                stack.enter_context(process)
                stack.callback(process.terminate)

        yield start


def compile_ahead() -> None:
    """Compile what training calls, the last first, and keep it."""
    for function, *arguments in calls():
        function.compile(tuple(map(numba.typeof, arguments)))


def calls() -> list[tuple[Any, ...]]:
    """Functions, each with arguments of the types with which training calls it."""
    some, some_XX = np.zeros(1, np.float32), np.zeros((1, 1), np.float32)
    short, short_XX, long = np.zeros(1, np.int32), np.zeros((1, 1), np.int32), np.zeros(1, np.int64)
    texts, table = Texts(short, long, short, long, long, short_XX), Table(some_XX, some, some, short)
    scratch = Scratch(short, long, some_XX, some_XX, some, some_XX, short, some_XX)
    weights, targets = Dense.zeros(1, 1, 1, plain=True), Targets(long, short, some, some, some, some, 0.0)
    moments, rates, number = (weights, weights), Rates(0.0, 0.0, 0.0), some[0]
    return [
        (step.adamw, weights, weights, moments, rates, number, 0),
        (step.adagrad, table, scratch, 0, number),
        (step.back_through_queries, weights, weights, some_XX, some_XX, some_XX),
        (step.collect, 0, table, scratch, 0),
        (step.back_through_attention, 0, some_XX, False, scratch, some_XX, some_XX, some, some_XX),
        (back_through_head, some_XX, weights, weights, some_XX, some_XX),
        (loss_of, targets, 0, some, some),
        (read_out, weights, some_XX, some_XX),
        (step.predict_texts, texts, table, weights, False, scratch, some_XX),
        (answers, Features(long, short, some), some_XX, some, some_XX),
    ]
