"""What each part of the model brings, on one table, in one run: .json and .md.

    python benchmarks/ablate.py DATA/trec6/train.csv --mixing none,gmlp,softmax --seeds 3 --output trec6

Every combination of the choices is trained with each seed, and tested on held-out rows. A second run continues where
the first one stopped; a variant that fails appears in the table with its error.
"""

import hashlib
import os
import platform
import sys
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from ablation import measure, report, tasks
from ablation.cells import AblationState, CellSettings, choose, make_cells
from textcls.cli.checked_options import checked_option
from textcls.cli.options import PATH, engine_options
from textcls.data import Labelled, read_labelled
from textcls.display.terminal.console import stderr_console
from textcls.errors import ConfigError, TextclsError
from textcls.jobs import Engine
from textcls.jobs.engines import EngineName
from textcls_training.config.settings import OPTIONS

VERSIONS_OF = ("textcls", "torch", "onnxruntime", "numpy")


@click.command()
@click.argument("data", type=PATH, required=False)
@click.option("--task", type=click.Choice(["order"]), help="A synthetic task instead of DATA: which word comes first.")
@click.option("--test", type=PATH, help="Labelled rows to test on.  [default: a fifth of DATA, by a hash of the text]")
@click.option("--output", "-o", type=PATH, default=Path("ablation"), show_default=True, help="Without suffix.")
@click.option("--mixing", default="all", show_default=True, metavar="A,B", help="Mixing layers.")
@click.option("--attention", default="norm", show_default=True, metavar="A,B", help="Kind of attention.")
@click.option("--embedding", default="rows", show_default=True, metavar="A,B", help="Where token vectors come from.")
@click.option("--values", default="token", show_default=True, metavar="A,B", help="What attention sums.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Seeds to train each variant with.")
@checked_option("epochs", OPTIONS["epochs"])
@checked_option("mixing_rate", OPTIONS["mixing_rate"])
@checked_option("bigrams", OPTIONS["bigrams"])
@checked_option("ngrams", OPTIONS["ngrams"])
@engine_options()
@click.option("--restart", is_flag=True, help="Discard the results of an earlier run.")
def ablate(
    data: Path | None,
    task: str | None,
    test: Path | None,
    output: Path,
    mixing: str,
    attention: str,
    embedding: str,
    values: str,
    seeds: int,
    epochs: int | None,
    mixing_rate: float | None,
    bigrams: bool,
    ngrams: tuple[int, ...] | None,
    workers: int | None,
    engine_name: EngineName,
    restart: bool,
) -> None:
    """Train variants of the model on the labelled file DATA and compare them: OUTPUT.json and .md."""
    named = {"mixing": mixing, "attention": attention, "embedding": embedding, "values": values}
    cells = make_cells({field: choose(field, names) for field, names in named.items()}, range(seeds))
    path = output.with_name(f"{output.name}.json")
    name, train, test_rows = _parts(data, task, test)
    settings = CellSettings(epochs=epochs, mixing_rate=mixing_rate, bigrams=bigrams, ngram_sizes=ngrams)
    work = measure.Measuring.of(train, test_rows, settings)

    state = AblationState.resume(path, _about(name, train, test_rows, settings), restart)
    state.save(path)  # so that a place that cannot be written to is known before the work
    try:
        run = Engine(engine_name, workers, lambda note: click.echo(note, err=True))
        state.run_by(run, work, cells, path, stderr_console(quiet=False))
    finally:
        output.with_name(f"{output.name}.md").write_text(report.markdown(state), encoding="utf-8")
    click.echo(report.markdown(state))
    if state.errors:
        click.get_current_context().exit(1)


def _parts(data: Path | None, task: str | None, test: Path | None) -> tuple[str, Labelled, Labelled]:
    """Return the name of the rows, those to train on, and those to test on."""
    if (data is None) == (task is None):
        raise ConfigError("Give either a table, DATA, or a task, --task order.")
    if data is None:
        if test is not None:
            raise ConfigError("The task brings its own test rows; leave --test out.")
        return "the order task", *tasks.order_parts()
    if test is None:
        return data.name, *tasks.hold_out(read_labelled([data]))
    return data.name, read_labelled([data]), read_labelled([test])


def _about(name: str, train: Labelled, test: Labelled, settings: CellSettings) -> dict[str, Any]:
    default = type(settings)()
    given = {field: value for field, value in asdict(settings).items() if value != getattr(default, field)}
    digest = hashlib.sha256(
        repr([(part.texts, part.labels) for part in (train, test)]).encode("utf-8", "surrogatepass")
    )
    return {
        "date": date.today().isoformat(),
        "data": name,
        "data_sha256": digest.hexdigest(),
        "train_rows": len(train.texts),
        "test_rows": len(test.texts),
        "settings": ", ".join(f"{field} {value}" for field, value in given.items()) or "default",
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "versions": {package: version(package) for package in VERSIONS_OF} | {"python": platform.python_version()},
    }


if __name__ == "__main__":
    try:
        ablate()
    except TextclsError as error:
        sys.exit(f"Error: {error}")
