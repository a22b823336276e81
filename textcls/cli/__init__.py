"""The command line: `textcls COMMAND ...`. A command parses, calls the function that does its work, and prints."""

import os
import re
import sys
from difflib import get_close_matches
from typing import Any, Final

import click

from textcls import __version__
from textcls._util import gone, optional_dependencies
from textcls.cli import settings
from textcls.display.text import visible
from textcls.errors import MissingExtraError, SurroundingsError, TextclsError, exit_code

# What shells give a program that Ctrl-C ended, and one whose reader has gone.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
# By what a person wants, in the order in which they meet them. Commands are imported when they are called: `textcls
# predict` must not pay for PyTorch.
SECTIONS: Final = {
    "From rows to a model": {
        "demo": "textcls.cli.demo:demo",
        "suggest": "textcls.cli.suggest:suggest_command",
        "label": "textcls.cli.label:label",
        "check": "textcls.cli.check:check",
        "train": "textcls_training.cli.train:train",
        "train-many": "textcls_training.cli.many:train_many",
        "tune": "textcls_training.tuning.cli:tune",
        "curve": "textcls_training.learning_curve.cli:curve",
        "evaluate": "textcls.cli.evaluate:evaluate",
        "compare": "textcls.cli.compare:compare",
        "report": "textcls.cli.report:report",
        "drift": "textcls.cli.drift:drift",
    },
    "Ask the model": {
        "predict": "textcls.cli.predict:predict",
        "explain": "textcls.cli.explain:explain",
        "serve": "textcls.cli.serve:serve",
        "publish": "textcls.cli.publish:publish",
        "versions": "textcls.cli.versions:versions",
        "fetch": "textcls.cli.fetch:fetch",
        "web": "textcls.cli.web:web",
    },
    "Look closer": {
        "inspect": "textcls.cli.inspect:inspect",
        "lexicon": "textcls.cli.lexicon:lexicon",
    },
    "With few labels, or none": {
        "annotate": "textcls.cli.annotate:annotate",
        "vectors": "textcls_training.cli.vectors:vectors",
        "pretrain": "textcls_training.pretraining.cli:pretrain",
        "clusters": "textcls.cli.clusters:clusters",
        "teach": "textcls.cli.teach:teach_command",
    },
}
COMMANDS: Final = {name: place for commands in SECTIONS.values() for name, place in commands.items()}
# Of these commands another extra has all that they need.
EXTRA_OF_COMMAND: Final = {"tune": "tune"}


# Characters of a first sentence, which is shown as a whole.
_SENTENCE: Final = 300


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports them on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which a person meets them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by sections, each with the beginning of its help."""
        for section, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [(name, command.get_short_help_str(_SENTENCE)) for name, command in commands if command]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or say which extra is missing."""
        if cmd_name not in COMMANDS:
            return None
        try:
            command = optional_dependencies.load(
                COMMANDS[cmd_name], f"textcls {cmd_name}", EXTRA_OF_COMMAND.get(cmd_name)
            )
        except MissingExtraError as missing:
            return _command_that_fails(cmd_name, missing)
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name]} is no command")
        settings.add(command, list(COMMANDS))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of a mistyped one say which may be meant, as click does of options."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if why := gone.COMMANDS.get(args[0]):
                raise click.UsageError(f"There is no command {args[0]!r} any more: {why}", ctx) from error
            close = get_close_matches(args[0], COMMANDS, 1)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {close[0]!r}?", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error meant for a person becomes one line on standard error and an exit code."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if why := gone.gone(error.ctx.info_name or "" if error.ctx else "", error.option_name):
                raise click.UsageError(f"There is no option {error.option_name} any more: {why}", error.ctx) from error
            raise
        except click.MissingParameter:
            raise  # It is a BadParameter whose sentence is made when it is shown.
        except click.BadParameter as error:
            raise click.BadParameter(settings.with_origin(error), error.ctx, error.param, error.param_hint) from error
        except TextclsError as error:
            click.echo(f"Error: {visible(self._with_options(ctx, str(error)))}", err=True)
            ctx.exit(exit_code(error))
        except OSError as error:
            ctx.exit(report_os_error(error))
        except KeyboardInterrupt:
            click.echo("Interrupted; no file was left half-written.", err=True)
            ctx.exit(INTERRUPTED)

    def _with_options(self, ctx: click.Context, said: str) -> str:
        """Return a sentence in which options of the command are called as they are on the command line."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = {one.name: one.opts[-1] for one in command.params if one.name} if command is not None else {}
        names = "|".join(name for name in options if "_" in name) or "_"
        return re.sub(rf"(?<![\w'/.-])(?:{names})(?![\w'/-])", lambda found: options.get(found[0], found[0]), said)


def report_os_error(error: OSError) -> int:
    """Say what the system refused, and return the exit code; where nobody reads any more, nothing is said."""
    if isinstance(error, BrokenPipeError):
        # What would follow goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    click.echo(f"Error: {error.filename or 'Output'}: {error.strerror or error}.", err=True)
    return exit_code(SurroundingsError())


def _command_that_fails(name: str, error: MissingExtraError) -> click.Command:
    def fail(_: tuple[str, ...]) -> None:
        raise error

    anything = click.Argument(["_"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "help_option_names": []}
    return click.Command(name, callback=fail, params=[anything], short_help=f"({error})", context_settings=settings)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="textcls")
def main() -> None:
    """Train a text classifier in seconds; deploy one small ONNX file that explains its answers.

    From a table with the columns text and label to a service (textcls demo writes one to try):

    \u0008
    textcls check tickets.csv
    textcls train tickets.csv --output tickets.onnx
    textcls evaluate tickets.onnx heldout.csv
    textcls explain tickets.onnx "my card was charged twice"
    textcls predict tickets.onnx new.csv --output answers.csv
    textcls serve tickets.onnx --port 8000

    textcls COMMAND --help shows an example and all options of each command.
    """
