"""New names for labels: from a map in a file, one spelling for labels that differ only by case and spaces, and the
paths of a tree.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from textcls.data.label_tree import LabelTree
from textcls.data.labelled import Labelled, LabelledSets
from textcls.data.memory import Readable
from textcls.data.rows import Bad, BadRows
from textcls.data.source import name_of
from textcls.data.tables import open_table
from textcls.data.targets import required_label
from textcls.errors import ConfigError, InputError
from textcls.model.label_sets import LabelSet
from textcls.model.labels import BETWEEN_LEVELS, as_seen, spelling

Rows = TypeVar("Rows", bound=Labelled | LabelledSets)
# The columns of a file that maps labels.
OLD: Final = "label"
NEW: Final = "new_label"


def spelt_alike(labels: Iterable[str]) -> dict[str, str]:
    """Return, for each label spelt differently from what `_most_frequent` gives, that spelling."""
    counts = Counter(labels)
    best = _most_frequent(counts)
    return {name: best[spelling(name)] for name in counts if name != best[spelling(name)]}


def _most_frequent(counts: Counter[str]) -> dict[str, str]:
    """Return the most frequent spelling of each group of like labels, by their shared form; for paths, node by node.

    Spellings with invisible characters count only if there are no others; of equally frequent ones the first wins.
    """
    alike: defaultdict[str, Counter[str]] = defaultdict(Counter)
    nodes: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for name, count in counts.items():
        alike[spelling(name)][name] += count
        parts = name.split(BETWEEN_LEVELS)
        for last, part in enumerate(parts, 1):
            nodes[tuple(map(spelling, parts[:last]))][part.strip()] += count
    return {plain: _by_node(_best(names), nodes) for plain, names in alike.items()}


def _by_node(name: str, nodes: Mapping[tuple[str, ...], Counter[str]]) -> str:
    """Return a path with each node in its most frequent spelling; a label that is not a path unchanged."""
    parts = name.split(BETWEEN_LEVELS)
    if len(parts) == 1:
        return name
    spelt = tuple(map(spelling, parts))
    return BETWEEN_LEVELS.join(_best(nodes[spelt[:last]]) for last in range(1, len(parts) + 1))


def _best(names: Counter[str]) -> str:
    return max(names, key=lambda name: (as_seen(name) == name, names[name]))


def read_map(path: Readable, separator: str | None = None) -> dict[str, str]:
    """Return the new name of each label that a file maps in its columns `label` and `new_label`.

    Args:
        path: the file.
        separator: what separates the labels of a cell; None if nothing does.

    Raises:
        InputError: it cannot be read, lacks these columns, maps nothing, or maps a label to two names or to one that
            contains the separator.
    """
    found: dict[str, str] = {}
    with open_table(path) as table:
        missing = next((name for name in (OLD, NEW) if name not in table.columns), None)
        if missing is not None:
            raise InputError(f"{name_of(path)} has no column {missing!r}: a map of labels has {OLD!r} and {NEW!r}.")
        for row in table.rows:
            old, new = (required_label(row, name) for name in (OLD, NEW))
            if separator and separator in new:
                raise InputError(
                    f"{row.where}: {new!r} holds {separator!r}, which separates labels; choose another name."
                )
            if found.setdefault(old, new) != new:
                raise InputError(f"{row.where}: {old!r} is mapped to {found[old]!r} above, and to {new!r} here.")
    if not found:
        raise InputError(f"{name_of(path)} maps no label; fill it in, or leave it out.")
    return found


class Renaming:
    """New names for the labels of rows.

    Args:
        names: the new name of each label that has one.
        merge: whether labels that differ only by case and spaces become one; then a new name is for all spellings.
        tree: the tree to whose paths the labels are changed last.
    """

    def __init__(self, names: Mapping[str, str], *, merge: bool, tree: LabelTree | None = None) -> None:
        self._names, self._merge, self._tree = names, merge, tree
        self._of_spelling = {spelling(old): new for old, new in names.items()} if merge else {}
        self._spelt: dict[str, str] = {}

    @property
    def old_names(self) -> Iterable[str]:
        """The labels that a file maps."""
        return self._names

    def learn(self, rows: Rows, *, skip: bool = False) -> list[str]:
        """Take the labels of training rows as all existing labels, and return notes about their renaming.

        Raises:
            ConfigError: each label has a column of its own, or there is a tree and a text may have several labels.
            InputError: a label is not a node of the tree, and its rows are not to be skipped.
        """
        if isinstance(rows, LabelledSets) and self._tree is not None:
            raise ConfigError("--label-tree is for rows with one label each, and these may have several; leave it out.")
        if isinstance(rows, LabelledSets) and rows.label_columns:
            raise ConfigError(
                "--label-map and --merge-labels rename labels in cells; where each has a column of its own, rename the "
                "columns."
            )
        targets: Any = rows.labels
        labels: list[str] = [name for of in targets for name in ([of] if isinstance(of, str) else of)]
        spelt = spelling if self._merge else str
        there = {spelt(name) for name in labels}
        idle = (name for name in self._names if spelt(name) not in there)
        said = [f"No row has the label {name!r}, which is to be renamed." for name in idle]
        if self._merge:
            self._spelt = _most_frequent(Counter(self._mapped(name) for name in labels))
        renamed = {name: self._spelling(name) for name in dict.fromkeys(labels)}
        of_tree = [] if self._tree is None else self._tree.learn(renamed.values(), skip=skip)
        said += [f"The label {old!r} is read as {new!r}." for old, new in renamed.items() if old != new]
        return [*sorted(said), *of_tree]

    def of(self, rows: Rows) -> Rows:
        """Return rows with the new names; if two labels of a text become one, the larger probability counts."""
        labels: Any = [self._name(of) if isinstance(of, str) else self._set(of) for of in rows.labels]
        there = {*labels} if isinstance(rows, Labelled) else {name for of in labels for name in of}
        renamed = {old: new for old in self._names if (new := self._name(old)) in there and old not in there}
        return replace(rows, labels=labels, renamed=renamed)

    def of_weights(self, weights: Mapping[str, float]) -> Mapping[str, float]:
        """Return the weights of labels by their paths in the tree, which rows have as labels.

        Raises:
            ConfigError: a node has two weights.
        """
        if self._tree is None:
            return weights
        found = {self._tree.path(label): weight for label, weight in weights.items()}
        if len(found) < len(weights):
            raise ConfigError("--class-weight weighs a node twice, by its name and by its path; leave one of them out.")
        return found

    def in_tree(self, rows: Rows, bad: BadRows) -> Rows:
        """Return renamed rows without those whose label is not in the tree, which go to `bad`."""
        if self._tree is None or not (strange := {*self._tree.strange(map(str, rows.labels))}):
            return rows
        for i, label in enumerate(rows.labels):
            if label in strange:
                bad.add(Bad(rows.places[i], f"the label {label!r} is not a node of {self._tree.file}"))
        return cast(Rows, rows.only([i for i, label in enumerate(rows.labels) if label not in strange]))

    def _mapped(self, label: str) -> str:
        return self._names.get(label) or self._of_spelling.get(spelling(label), label)

    def _spelling(self, label: str) -> str:
        name = self._mapped(label)
        return self._spelt.get(spelling(name), name)

    def _name(self, label: str) -> str:
        name = self._spelling(label)
        return name if self._tree is None else self._tree.path(name)

    def _set(self, labels: LabelSet) -> LabelSet:
        found: dict[str, float] = {}
        for label, probability in labels.items():
            name = self._name(label)
            found[name] = max(probability, found.get(name, 0.0))
        return found
