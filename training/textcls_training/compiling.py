"""How loops are compiled by Numba: once for a type of machine, beside PyTorch or without it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile without the GIL, so that two trainings run side by side, and keep the machine code for the next process.

    Sums may be reordered to use vector instructions: into the same order every time on one type of machine. A quotient
    by zero is infinite, as in NumPy: a check in each division would keep loops from using them.
    """
    compiler = partial(numba.njit, nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")
    try:
        return cast(Function, compiler(cache=True)(function))
    except RuntimeError:  # No folder for the cache can be written: compiled anew in each process.
        return cast(Function, compiler()(function))


def first_use(function: Callable[..., Any]) -> bool:
    """Whether no machine code of a compiled function is kept, or that of an older source: it will be compiled now."""
    compiler = cast(Any, function)
    if compiler.stats.cache_path is None:
        return True
    code = compiler.py_func.__code__
    source = Path(code.co_filename)
    kept = Path(compiler.stats.cache_path).glob(f"{source.stem}.{code.co_name}-{code.co_firstlineno}.*.nbi")
    return all(index.stat().st_mtime < source.stat().st_mtime for index in kept)
