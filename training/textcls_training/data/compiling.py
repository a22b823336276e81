"""Compilation of loops by Numba: once per type of machine, with or without PyTorch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Event, Listener, install_listener

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function, *, inner: bool = False) -> Function:
    """Compile without the GIL, so that two trainings run side by side, and keep the machine code for the next process.

    Sums may be reordered to use vector instructions: always into the same order on one type of machine. A quotient by
    zero is infinite, as in NumPy: a check in each division would prevent vector instructions.
    """
    options = {"fastmath": {"reassoc", "contract"}, "error_model": "numpy", "no_cpython_wrapper": inner}
    compiler = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, **options)
    try:
        return cast(Function, compiler(cache=True)(function))
    except RuntimeError:  # No cache folder is writable: each process compiles again.
        return cast(Function, compiler()(function))


def compiled_inner(function: Function) -> Function:
    """Compile what only compiled functions call, without an entry point from Python: this takes an eighth of the time.

    Called from Python, it ends the process.
    """
    return compiled(function, inner=True)


def compiled_in_place(function: Function) -> Function:
    """Compile as a part of the one compiled function that calls it, with its options, and not separately beforehand."""
    return cast(Function, numba.njit(inline="always")(function))


class _Compiled(Listener):
    """Report the first compilation."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._left = [tell]

    def on_start(self, event: Event) -> None:
        # Two threads may begin at once: only one of them reports it.
        with suppress(IndexError):
            self._left.pop()()

    def on_end(self, event: Event) -> None:
        pass


@contextmanager
def compiling_told(tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` once, when the first loop in the block has to be compiled because no machine code of it is cached."""
    with install_listener("numba:compile", _Compiled(tell)):
        yield
