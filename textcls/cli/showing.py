"""Show what a command has found in the requested form."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

import click

from textcls._util.atomic_write import write_computed
from textcls.display.plain_data import json_line
from textcls.display.terminal.console import Printable, show, stdout_console


class Found(Protocol):
    """What a command has found."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""


def show_found(
    found: Found,
    *,
    html: Path | None,
    as_json: bool,
    line: str,
    page: Callable[[], str],
    report: Callable[[int], Iterable[Printable]],
) -> None:
    """Write what was found as a page, if requested; print it as JSON, or else in readable form.

    Args:
        found: the object.
        html: the page to write.
        as_json: whether JSON is printed.
        line: the line that is printed in addition to a page.
        page: makes the page.
        report: makes the readable output without a page, given the width of the terminal.
    """
    if html is not None:
        write_computed(html, page().encode())
    if as_json:
        click.echo(json_line(found.as_json()))
    elif html is not None:
        click.echo(f"{line} -> {html}")
    else:
        console = stdout_console()
        show(report(console.width), console)
