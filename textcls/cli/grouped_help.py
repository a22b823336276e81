"""Help that begins with the options most people need, in groups; --help-all shows every one."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import click

from textcls.cli.settings import key_of

# The group of options that are not specific to a command.
_REST: Final = "Other"


class Group(NamedTuple):
    """Options that belong together, by name without leading hyphens.

    Attributes:
        title: the heading above them.
        first: the options that --help shows.
        more: the options that --help-all shows below them.
    """

    title: str
    first: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


# The options of all commands that read tables, below what a command says about its rows itself.
READING: Final = ("format", "encoding", "delimiter", "no-quotes", "no-header", "sheet")


class GroupedCommand(click.Command):
    """A command whose options are shown in groups."""

    def __init__(self, *arguments: Any, groups: Sequence[Group], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.groups = groups
        self.params.append(
            click.Option(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
                help="Show every option.",
            )
        )  # fmt: skip

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by groups: the first ones of each, or all."""
        everything = bool(ctx.meta.get(__name__))
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        left = {key_of(option): option.get_help_record(ctx) for option in options}
        for title, first, more in self.groups:
            shown = [left.pop(name) for name in (first + more if everything else first)]
            _write(formatter, title, shown)
            if not everything:
                for name in more:
                    left.pop(name)
        _write(formatter, _REST, list(left.values()))


def _write(formatter: click.HelpFormatter, title: str, records: Sequence[tuple[str, str] | None]) -> None:
    shown = [record for record in records if record is not None]
    if shown:
        with formatter.section(title):
            formatter.write_dl(shown)


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[__name__] = True
        click.echo(ctx.get_help())
        ctx.exit()
