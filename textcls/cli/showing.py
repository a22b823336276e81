"""What a command has found, shown in the form that is asked for."""

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
    """Write what was found as a page, if one is asked for; print it as JSON, or else for people.

    Args:
        found: the object.
        html: the page to write.
        as_json: whether JSON is printed.
        line: what is printed for people beside a page.
        page: makes the page.
        report: makes what is printed for people without a page, given the width of the terminal.
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
