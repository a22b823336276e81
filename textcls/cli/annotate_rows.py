"""What `textcls annotate` reads: the labels, the labelled rows, and the rows to answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from textcls._util.text_file import read_text
from textcls.annotation.annotate import sent
from textcls.annotation.prompt import DescribedLabel, Prompt, examples_of
from textcls.cli.reading import Reading
from textcls.data import ReadOptions, open_table
from textcls.data.columns import ANSWER, ANSWERED_BY, PROBABILITY
from textcls.data.given_labels import present
from textcls.data.rows import Row
from textcls.data.targets import TargetOptions
from textcls.display.text import listed
from textcls.errors import ConfigError, InputError
from textcls.model.labels import unpaired_surrogate

# The columns that answers are written to.
ADDED: Final = (ANSWER, ANSWERED_BY, "answered_at", "answered_prompt", "answered_tokens", "answered_seconds")
DOLLARS: Final = "answered_dollars"
BY_MODEL: Final = "answer_of_"
_MOST_PROMPT: Final = 1_000_000
Known = Sequence[tuple[str, tuple[str, ...]]]


class Rows(NamedTuple):
    """The rows to answer, with the texts sent for them; and rows whose labels are known, likewise."""

    rows: Sequence[Row]
    texts: Sequence[str]
    known: Known

    @property
    def all_texts(self) -> list[str]:
        """The texts that are sent, those whose labels are known first."""
        return [*(text for text, _ in self.known), *self.texts]


def read_known(
    path: Path,
    text_columns: Sequence[str],
    label_column: str | None,
    described: Sequence[DescribedLabel],
    targets: TargetOptions,
    reading: Reading,
) -> list[tuple[str, tuple[str, ...]]]:
    """Return labelled rows, with texts as sent, whose labels are all among the described ones."""
    with reading.table_of_targets([path], text_columns, label_column, targets) as table:
        pairs = [(sent(row.text), row.label) for row in table.rows]
    if not targets.several and any(not isinstance(label, str) for _, label in pairs):
        raise ConfigError(f"The rows of {path} may have several labels: add --several.")
    found = [(text, (label,) if isinstance(label, str) else tuple(sorted(present(label)))) for text, label in pairs]
    names, having = [label.name for label in described], {label for _, labels in found for label in labels}
    if other := next((label for label in sorted(having) if label not in names), None):
        raise InputError(f"{path} has the label {other!r}, which --labels does not name.")
    if without := [name for name in names if name not in having]:
        reading.say([f"No labelled row has the label {listed(without)}, which train needs of each."])
    return found


def prompt_of(
    described: Sequence[DescribedLabel], rows: Known, examples: int, prompt: Path | None, *, several: bool
) -> tuple[Known, Prompt]:
    """Return the labelled rows that are asked about, and the prompt, in which the other rows are examples."""
    shown = set(examples_of(rows, examples))
    system = "" if prompt is None else read_text(prompt, _MOST_PROMPT, "The prompt")
    made = Prompt(tuple(described), tuple(rows[i] for i in sorted(shown)), system, several)
    return [row for i, row in enumerate(rows) if i not in shown], made


def read_labels(path: Path, options: ReadOptions) -> list[DescribedLabel]:
    """Return the labels of a file, with the meaning of each."""
    with open_table(path, options) as table:
        if "label" not in table.columns:
            raise InputError(f"{path} has no column label; it has {listed(table.columns)}.")
        cells = [(row.fields.get("label"), row.fields.get("description"), row.where) for row in table.rows]
    found = []
    for name, what, where in cells:
        label = "" if name is None else str(name).strip()
        if unpaired_surrogate(label):
            raise InputError(f"{where}: the label holds half a character, which no request can.")
        if label:
            found.append(DescribedLabel(label, "" if what is None else str(what).strip()))
    return found


def read_given(path: Path, text_columns: Sequence[str], known: Known, reading: Reading) -> Rows:
    """Return the rows to answer, whose columns must not be those of the answers."""
    with reading.texts(path, text_columns) as found:
        rows = list(found)
    reading.say_skipped()
    if not rows:
        raise InputError(f"{path} has no rows.")
    columns = dict.fromkeys(name for _, row in rows for name in row.fields)
    if taken := next((name for name in columns if _is_added(name)), None):
        raise InputError(
            f"{path} has a column {taken!r}, and {listed(ADDED)} and all that begin with {PROBABILITY} are "
            "columns of the answers: rename it."
        )
    return Rows([row for _, row in rows], [sent(text) for text, _ in rows], known)


def _is_added(name: str) -> bool:
    return name in (*ADDED, DOLLARS) or name.startswith((PROBABILITY, BY_MODEL))
