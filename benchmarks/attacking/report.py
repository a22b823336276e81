"""The table of attacks.md: what each attack did before, and what it does after."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from common import headline
from runner import markdown_table

COLUMNS: Final = ("before", "after")
_HEADER: Final = ("attack", "memory MB", "/livez ms", "/readyz ms", "/metrics ms", "broken before", "broken after")
_ABOUT: Final = """\
# The service under attack

Each attack goes against a fresh `textcls serve` of one worker, unless it says otherwise, under a memory limit of
{limit} MiB, that of the shipped manifests. `python benchmarks/attacks.py` runs them; `attacks.json` holds
more of each: what was sent and answered in each round, of which the worst counts here, what became of an ordinary
caller's requests meanwhile, and the load average of the machine, which others used as well.

A cell says *before → after*. **memory** is the most that all processes of the service were above the idle service:
20 MB are allowed, for what a caller with a key may send the budget of `textcls serve` on top, and where a worker starts
or takes up a model what `deploy/README.md` says that this takes for a moment. **ms** is the longest
wait for an answer of a path that is asked all the while, each time over a new connection. In brackets, the longest wait
without what the machine took of it: the time for which a thread of the service waited for a processor, or a server that
does nothing let its caller wait. Of that 100 ms are allowed, for /metrics 500. **broken** is all that should not have
happened, or that it killed the service; an attack that broke nothing says so. An empty cell was not looked at.
"""

Record = Mapping[str, Any]


def page(kept: Record, names: Sequence[str]) -> str:
    """Return the whole page: the facts of both runs and a table for each section."""
    runs = [_run(column, kept[column]) for column in COLUMNS if column in kept]
    found = [kept.get(column, {}).get("attacks", {}) for column in COLUMNS]
    limits = {kept[column]["about"]["limit_kept_by"] for column in COLUMNS if column in kept}
    limit = next(kept[column]["about"]["limit_mib"] for column in COLUMNS if column in kept)
    lines = [_ABOUT.format(limit=limit), *runs, f"The limit is kept by: {'; '.join(sorted(limits))}."]
    section = ""
    rows: list[Sequence[str]] = []
    for name in names:
        both = [each.get(name) for each in found]
        known = next((each for each in both if each is not None), None)
        if known is None:
            continue
        if known["section"] != section:
            lines += _table(section, rows)
            section, rows = known["section"], []
        rows.append(_row(name, both))
    return "\n".join([*lines, *_table(section, rows)]) + "\n"


def _run(column: str, run: Record) -> str:
    """Say of a run when, of what and where it was, and what else the machine did."""
    loads = [each["load_average"] for each in run["attacks"].values()]
    return f"{column}: {headline(run['about'])[:-1]}; load average {min(loads)} to {max(loads)}.\n"


def _table(section: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", f"## {section[0].upper()}{section[1:]}", "", *markdown_table(_HEADER, rows)] if rows else []


def _row(name: str, both: Sequence[Record | None]) -> Sequence[str]:
    cells = [_cell(both, _memory), *(_cell(both, _wait(path)) for path in ("livez", "readyz", "metrics"))]
    return [name, *cells, *("" if each is None else "; ".join(each["broken"]) or "nothing" for each in both)]


def _cell(both: Sequence[Record | None], said: Callable[[Record], str]) -> str:
    before, after = ("" if each is None else said(each["figures"]) for each in both)
    return f"{before} → {after}" if before or after else ""


def _memory(figures: Record) -> str:
    return "" if figures["grown_mb"] is None else f"{figures['grown_mb']:+.0f}"


def _wait(path: str) -> Callable[[Record], str]:
    def said(figures: Record) -> str:
        if path not in figures["worst_ms"]:
            return ""
        return f"{figures['worst_ms'][path]:,.0f} ({figures['own_ms'][path]:,.0f})"

    return said
