"""`textcls publish`: a model as the next version of a registry, with its card and report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from textcls import __version__
from textcls.cli.options import (
    DATA,
    label_column_option,
    label_options,
    model_argument,
    once,
    reading_options,
    registry_argument,
    text_column_option,
)
from textcls.cli.reading import Reading
from textcls.cli.report import report_on
from textcls.cli.versions import now, promoted_lines
from textcls.data import TargetOptions
from textcls.data.memory import Readable
from textcls.display.markdown.card import file_card
from textcls.display.plain_data import json_line
from textcls.display.report_files import BESIDE, report_file
from textcls.errors import ConfigError
from textcls.evaluation import metrics
from textcls.evaluation.reporting.model_report import ModelFile
from textcls.model import artifact
from textcls.model.classifier import Classifier
from textcls.versions import folder as versions
from textcls.versions.folder import Registry
from textcls.versions.record import (
    BY_CHARACTERS,
    NOTE_CHARACTERS,
    Version,
    checked_name,
    checked_text,
    held_out_of,
)


@click.command(
    epilog="""Example: textcls publish tickets.onnx registry --promote

    Example: textcls publish tickets.onnx registry --report heldout.csv --by Ann --note "with the rows of November" """
)
@model_argument
@registry_argument
@click.option("--name", help="Name by which it is served.  [default: that of the registry; of a new one, MODEL's]")
@click.option("--by", metavar="WHO", help="Who publishes it; without this nobody is recorded.")
@click.option("--note", metavar="TEXT", help="What there is to say of it.")
@click.option(
    "--report",
    "data",
    type=DATA,
    multiple=True,
    metavar="DATA",
    help="Also keep a report on these labelled rows, which quotes some of them; may be repeated.",
)
@text_column_option
@label_column_option
@click.option("--promote", is_flag=True, help="Promote it: services that follow REGISTRY then answer with it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@label_options
@reading_options
def publish(
    model: Path,
    registry: Path,
    name: str | None,
    by: str | None,
    note: str | None,
    data: tuple[Readable, ...],
    text_columns: tuple[str, ...],
    label_column: str | None,
    promote: bool,
    as_json: bool,
    targets: TargetOptions,
    reading: Reading,
) -> None:
    """Add MODEL to the folder REGISTRY as its next version, with a model card; makes the registry if there is none.

    A version is there whole or not at all, and never changes. What was published before is the same version.
    textcls versions lists them, textcls serve REGISTRY answers with the one that is promoted.
    """
    given, name = name, _name(model, registry, name)
    by, note = checked_text(by, "--by", BY_CHARACTERS), checked_text(note, "--note", NOTE_CHARACTERS)
    content = artifact.read_file(model)
    classifier = Classifier.from_bytes(content, model)
    file = replace(ModelFile.of(classifier), name=versions.MODEL)
    same = Registry(registry).find(file.sha256) if versions.is_registry(registry) else None
    if same is None:
        read = (classifier, file, data, (text_columns, label_column), targets, reading)
        files = _files(model, name, *read)
        opened = Registry.make(registry, name, exactly=given is not None)
        if (called := opened.state().name) != name:  # Another process has made it meanwhile.
            name, files = called, _files(model, called, *read)
        with opened.kept_if_filled():
            found, new = opened.add(content, files, _version(file, by, note))
    else:
        found, new = same, False
    folder = Registry(registry).path_of(found.version)
    lines = [f"{name}, version {found.version}: {found.bytes / 1e6:.2f} MB -> {folder}"]
    if not new:
        lines = [f"{model} is {name}, version {found.version}, published {found.created}; nothing was added."]
    promotion = promoted_lines(Registry(registry), found.version, by) if promote else []
    if as_json:
        promoted = Registry(registry).state().promoted == found.version
        click.echo(json_line({"name": name, **found.to_json(), "new": new, "promoted": promoted}))
    else:
        click.echo("\n".join([*lines, *promotion]))


def _name(model: Path, registry: Path, given: str | None) -> str:
    """Return the name of the model.

    Raises:
        ConfigError: it is not a name, or differs from that of the registry.
        InputError: the folder is not a registry.
    """
    versions.check_new(registry)
    if not versions.is_registry(registry):
        return checked_name(given or model.stem.partition("@")[0], "give it one with --name")
    name = Registry(registry).state().name
    if given is not None and given != name:
        raise ConfigError(
            f"{registry} is the registry of {name!r}, not of {given!r}: leave --name out, or name another folder."
        )
    return name


def _version(file: ModelFile, by: str | None, note: str | None) -> Version:
    return Version(
        version=0,  # `Registry.add` gives it its number.
        sha256=file.sha256,
        bytes=file.bytes,
        created=now(),
        textcls=__version__,
        labels=len(file.info.labels),
        held_out=held_out_of(file.info),
        by=by,
        note=note,
    )


def _files(
    model: Path,
    name: str,
    classifier: Classifier,
    file: ModelFile,
    data: Sequence[Readable],
    columns: tuple[Sequence[str], str | None],
    targets: TargetOptions,
    reading: Reading,
) -> dict[str, bytes]:
    """Return the files beside the model: its card, and the report if there are rows."""
    if not data:
        return {"README.md": file_card(name, file).encode()}
    metrics.require()
    once(data)
    found = replace(report_on(model, classifier, data, columns, targets, reading), model=file)
    return {beside: report_file(kind, model, data, found, name).encode() for beside, kind in BESIDE.items()}
