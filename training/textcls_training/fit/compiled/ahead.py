"""Compile loops ahead, in a process that runs beside the first training on a machine.

Numba compiles one function at a time per process. A training that begins with the first function it needs meets a
process that begins with the last one somewhere in the middle; each then finds what the other has cached.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import numba
import numpy as np

from textcls_training.fit.compiled import step
from textcls_training.fit.compiled.arrays import Dense, Rates, Scratch, Table, Targets, Texts
from textcls_training.fit.compiled.head import back_through_head, loss_of, read_out
from textcls_training.fit.one_vs_rest.features import Features
from textcls_training.fit.one_vs_rest.solver import answers

# Do not import from the script's folder: a file there may have the name of a module.
_COMMAND: Final = ("-P", "-c", f"from {__name__} import compile_ahead; compile_ahead()")


@contextmanager
def compiling_ahead() -> Iterator[Callable[[], None]]:
    """Yield a function that starts the other process, if that is useful; it ends with the block."""
    with ExitStack() as stack:

        def start() -> None:
            # Without it, training merely takes longer.
            with suppress(OSError):
                if _is_of_use():
                    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
                    process = subprocess.Popen([sys.executable, *_COMMAND], stdin=pipe, stdout=quiet, stderr=quiet)
                    stack.enter_context(process)

        yield start


def _is_of_use() -> bool:
    """Return whether there are two processors, a cache folder for compiled code, and an interpreter to start."""
    several = numba.config.NUMBA_NUM_THREADS > 1  # type: ignore[attr-defined]
    kept = step.train_batches.stats.cache_path is not None  # type: ignore[attr-defined]
    return several and kept and bool(sys.executable) and not hasattr(sys, "frozen")


def compile_ahead() -> None:
    """Compile what training calls, the last first, and cache it, until the other end of standard input is closed.

    A process that ended within a function might leave an index of machine code that does not exist.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watching = threading.Thread(target=os.read, args=(0, 1), daemon=True)
    watching.start()
    for function, *arguments in calls():
        if not watching.is_alive():
            break
        function.compile(tuple(map(numba.typeof, arguments)))


def calls() -> list[tuple[Any, ...]]:
    """Return functions, each with arguments of the types with which training calls it."""
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
