"""`textcls ablate`: what each part of the model brings, on one table, in one run.

What needs PyTorch, whose import takes seconds, is imported when the command runs: help and completion must not wait.
"""

import hashlib
import os
import platform
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from textcls._util import optional_dependencies
from textcls._util.atomic_write import check_not_an_input, check_output_path, write_computed
from textcls.cli.options import PATH, engine_options, new_label_column_option, new_text_column_option, reading_options
from textcls.cli.reading import Reading
from textcls.data import Labelled, read_labelled
from textcls.display.terminal.console import stderr_console
from textcls.errors import ConfigError
from textcls.evaluation import metrics
from textcls.jobs import engine
from textcls.jobs.engines import EngineName
from textcls_training.config.shared_options import train_option

if TYPE_CHECKING:
    from textcls_torch.studies.ablation.cells import CellSettings

optional_dependencies.look_for("torch", "numba", "scipy", "sklearn")

VERSIONS_OF = ("textcls", "torch", "onnxruntime", "numpy")


@click.command(epilog="Example: textcls ablate tickets.csv --mixing none,gmlp,softmax --seeds 3 --output ablation")
@click.argument("data", type=PATH, required=False)
@click.option("--task", type=click.Choice(["order"]), help="A synthetic task instead of DATA: which word comes first.")
@click.option("--test", type=PATH, help="Labelled rows to test on.  [default: a fifth of DATA, by a hash of the text]")
@click.option("--output", "-o", type=PATH, default=Path("ablation"), show_default=True, help="Without suffix.")
@new_text_column_option
@new_label_column_option
@click.option("--mixing", default="all", show_default=True, metavar="A,B", help="Mixing layers.")
@click.option("--attention", default="norm", show_default=True, metavar="A,B", help="Kind of attention.")
@click.option("--embedding", default="rows", show_default=True, metavar="A,B", help="Where token vectors come from.")
@click.option("--values", default="token", show_default=True, metavar="A,B", help="What attention sums.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Seeds to train each variant with.")
@train_option("epochs")
@train_option("mixing_rate")
@train_option("bigrams")
@train_option("ngrams")
@engine_options()
@click.option("--restart", is_flag=True, help="Discard the results of an earlier run.")
@reading_options
def ablate(
    data: Path | None,
    task: str | None,
    test: Path | None,
    output: Path,
    text_columns: tuple[str, ...],
    label_column: str | None,
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
    reading: Reading,
) -> None:
    """Train variants of the model on the labelled file DATA and compare them: OUTPUT.json, .md and .html.

    Every combination of the choices is trained with each seed, and tested on held-out rows. A second run continues
    where the first one stopped; a variant that fails appears in the table with its error.
    """
    from textcls_torch.studies.ablation import measure, page, report
    from textcls_torch.studies.ablation.cells import AblationState, CellSettings, choose, make_cells

    metrics.require()
    page.require()
    named = {"mixing": mixing, "attention": attention, "embedding": embedding, "values": values}
    cells = make_cells({field: choose(field, names) for field, names in named.items()}, range(seeds))
    paths = {suffix: output.with_name(f"{output.name}.{suffix}") for suffix in ("json", "md", "html")}
    for path in paths.values():
        check_output_path(path)
        check_not_an_input(path, [given for given in (data, test) if given is not None])
    name, train, test_rows = _parts(data, task, test, lambda path: _read(path, text_columns, label_column, reading))
    settings = CellSettings(epochs=epochs, mixing_rate=mixing_rate, bigrams=bigrams, ngram_sizes=ngrams)
    work = measure.Measuring.of(train, test_rows, settings)

    state = AblationState.resume(paths["json"], _about(name, train, test_rows, settings), restart)
    state.save(paths["json"])  # so that a place that cannot be written to is known before the work
    try:
        run = engine(engine_name, workers, lambda note: reading.say([note]))
        state.run_by(run, work, cells, paths["json"], stderr_console(quiet=reading.quiet))
    finally:
        _write(paths["md"], report.markdown(state))
        _write(paths["html"], page.render(state))
    click.echo(report.markdown(state))
    if state.errors:
        click.get_current_context().exit(1)


def _read(path: Path, text_columns: tuple[str, ...], label_column: str | None, reading: Reading) -> Labelled:
    rows = read_labelled([path], text_columns, label_column, options=reading.options, bad=reading.bad)
    reading.say(rows.notes)
    reading.say_skipped()
    return rows


def _parts(
    data: Path | None, task: str | None, test: Path | None, read: Callable[[Path], Labelled]
) -> tuple[str, Labelled, Labelled]:
    """Return the name of the rows, those to train on, and those to test on."""
    from textcls_torch.studies.ablation import tasks

    if (data is None) == (task is None):
        raise ConfigError("Give either a table, DATA, or a task, --task order.")
    if data is None:
        if test is not None:
            raise ConfigError("The task brings its own test rows; leave --test out.")
        return "the order task", *tasks.order_parts()
    if test is None:
        return data.name, *tasks.hold_out(read(data))
    return data.name, read(data), read(test)


def _about(name: str, train: Labelled, test: Labelled, settings: "CellSettings") -> dict[str, Any]:
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


def _write(path: Path, content: str) -> None:
    write_computed(path, content.encode())
