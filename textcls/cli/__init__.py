"""The command line: `textcls COMMAND ...`. A command parses, calls the function that does its work, and prints."""

import errno
import os
import re
import sys
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from textcls import __version__
from textcls._util import gone, optional_dependencies
from textcls.cli import settings
from textcls.display.text import visible
from textcls.errors import MissingExtraError, SurroundingsError, TextclsError, exit_code

# The exit codes that shells give a program that Ctrl-C ended, and one whose reader has gone.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
# What an error of the system is about that names no file, if it is not an output.
_NAMELESS: Final = {errno.ENOENT: "The working folder", errno.EMFILE: "Open files of this process"}


class Entry(NamedTuple):
    """A command: its module, its sentence in the help, and the extra that it requires."""

    place: str
    summary: str
    extra: str | None = None


# By purpose, in the order in which a person needs them. Commands are imported when they are called: help and
# completion of their names wait for none of them.
SECTIONS: Final = {
    "From rows to a model": {
        "demo": Entry("textcls.cli.demo:demo", "Write a sample of support tickets, and show what to do."),
        "suggest": Entry("textcls.cli.suggest:suggest_command", "Choose the rows that teach MODEL most."),
        "label": Entry("textcls.cli.label:label", "Label texts on a page in your browser, as a model learns."),
        "check": Entry("textcls.cli.check:check", "Check labelled files: duplicates, wrong labels, lengths."),
        "train": Entry("textcls_training.cli.train:train", "Train a classifier on labelled files.", "train"),
        "train-many": Entry("textcls_training.cli.many:train_many", "Train a model for each group of rows.", "train"),
        "tune": Entry("textcls_training.tuning.cli:tune", "Find options of textcls train that suit your rows.", "tune"),
        "curve": Entry("textcls_training.learning_curve.cli:curve", "Say what more rows would bring.", "train"),
        "evaluate": Entry("textcls.cli.evaluate:evaluate", "Score MODEL on labelled files."),
        "compare": Entry("textcls.cli.compare:compare", "Say whether one model is better than another."),
        "report": Entry("textcls.cli.report:report", "Report how good MODEL is, why it errs, what it relies on."),
        "drift": Entry("textcls.cli.drift:drift", "Say what has changed since MODEL was trained."),
    },
    "Ask the model": {
        "predict": Entry("textcls.cli.predict:predict", "Classify the rows of files."),
        "explain": Entry("textcls.cli.explain:explain", "Classify TEXT, and show what each token added."),
        "serve": Entry("textcls.cli.serve:serve", "Serve MODEL over HTTP, with a page to try it on.", "serve"),
        "publish": Entry("textcls.cli.publish:publish", "Add MODEL to a registry, a folder, as its next version."),
        "versions": Entry("textcls.cli.versions:versions", "List, promote and roll back versions in a registry."),
        "fetch": Entry("textcls.cli.fetch:fetch", "Copy a file from a URL if its SHA-256 is as expected."),
        "web": Entry("textcls.cli.web:web", "Write a page that runs MODEL in the browser alone."),
    },
    "Look closer": {
        "inspect": Entry("textcls.cli.inspect:inspect", "Show the labels, settings and training of MODEL."),
        "lexicon": Entry("textcls.cli.lexicon:lexicon", "Show what each word says of each label, without data."),
    },
    "With few labels, or none": {
        "annotate": Entry("textcls.cli.annotate:annotate", "Let a language model label texts.", "annotate"),
        "vectors": Entry("textcls_training.cli.vectors:vectors", "Make a file of word vectors, for textcls train."),
        "pretrain": Entry("textcls_training.pretraining.cli:pretrain", "Learn from unlabelled texts.", "train"),
        "clusters": Entry("textcls.cli.clusters:clusters", "Show the clusters into which MODEL sorts texts."),
        "teach": Entry("textcls.cli.teach:teach_command", "Teach MODEL a label from a few examples."),
    },
}
COMMANDS: Final = {name: entry for commands in SECTIONS.values() for name, entry in commands.items()}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports them on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which a person needs them."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by sections, each with its sentence."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.summary + _missing(entry)) for name, entry in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, or an option."""
        names = [CompletionItem(name, help=COMMANDS[name].summary) for name in COMMANDS if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command, or report which extra is missing."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        try:
            command = optional_dependencies.load(entry.place, f"textcls {cmd_name}", entry.extra)
        except MissingExtraError as missing:
            return _command_that_fails(cmd_name, missing)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.place} is no command")
        settings.add(command, list(COMMANDS))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a mistyped one suggest those that may be meant, as click does for options."""
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
        except MemoryError as error:
            why = f": {str(error).removesuffix('.')}" if str(error) else ""
            click.echo(f"Error: There is not enough memory here{why}.", err=True)
            ctx.exit(exit_code(SurroundingsError()))
        except KeyboardInterrupt:
            click.echo("Interrupted; no file was left half-written.", err=True)
            ctx.exit(INTERRUPTED)

    def _with_options(self, ctx: click.Context, message: str) -> str:
        """Return a sentence with the command's options spelt as on the command line."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        options = {one.name: one.opts[-1] for one in command.params if one.name} if command is not None else {}
        names = "|".join(name for name in options if "_" in name) or "_"
        return re.sub(rf"(?<![\w'/.-])(?:{names})(?![\w'/-])", lambda found: options.get(found[0], found[0]), message)


def report_os_error(error: OSError) -> int:
    """Report what the system refused, and return the exit code; report nothing if nobody reads any more."""
    if isinstance(error, BrokenPipeError):
        # Any further output is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    where = error.filename or _NAMELESS.get(error.errno or 0, "Output")
    with suppress(OSError):  # It may be standard error that takes nothing.
        click.echo(f"Error: {where}: {error.strerror or error}.", err=True)
    return exit_code(SurroundingsError())


def _missing(entry: Entry) -> str:
    """Return what must be installed first, in brackets; nothing if it is present."""
    there = entry.extra is None or optional_dependencies.installed(entry.extra)
    return "" if there else f' (needs pip install "textcls[{entry.extra}]")'


def _command_that_fails(name: str, error: MissingExtraError) -> click.Command:
    def fail(_: tuple[str, ...]) -> None:
        raise error

    anything = click.Argument(["_"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "help_option_names": []}
    return click.Command(name, callback=fail, params=[anything], context_settings=settings)


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
