"""A tree of labels in a file of its own: one row per node, with the node's parent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from textcls.data.memory import Readable
from textcls.data.rows import Row
from textcls.data.source import name_of
from textcls.data.tables import open_table
from textcls.data.targets import required_label
from textcls.errors import InputError
from textcls.model.label_paths import MOST_LEVELS
from textcls.model.labels import BETWEEN_LEVELS, MOST_LABELS, label_problem, written

# The columns of such a file.
CHILD: Final = "child"
PARENT: Final = "parent"
# The most labels that a message lists.
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class LabelTree:
    """A tree of labels.

    Attributes:
        file: the file that it was read from, for messages.
        paths: the path from the root to each node, as a label.
        leaves: the nodes without children.
    """

    file: str
    paths: Mapping[str, str]
    leaves: frozenset[str]

    def path(self, label: str) -> str:
        """Return the path of a node; any other label unchanged."""
        return self.paths.get(label, label)

    def strange(self, labels: Iterable[str]) -> list[str]:
        """Return the labels that are not nodes of the tree, sorted."""
        whole = {*self.paths.values()}
        return sorted(label for label in {*labels} if label not in self.paths and label not in whole)

    def learn(self, labels: Iterable[str], *, skip: bool = False) -> list[str]:
        """Check the labels of rows against the tree, and return notes about them, in sentences.

        Raises:
            InputError: some are not nodes of the tree, and their rows are not to be skipped, or all labels are such.
        """
        there = {*labels}
        if (strange := self.strange(there)) and skip and len(strange) < len(there):
            there -= {*strange}
        elif strange:
            more = f" and {len(strange) - _NAMED:,} more" * (len(strange) > _NAMED)
            names = ", ".join(map(repr, strange[:_NAMED])) + more
            raise InputError(f"{self.file} has no node {names}, which rows have as a label; add a row for each.")
        said = [f"Labels are read as their paths in {self.file}, such as {self.path(min(there))!r}."]
        if idle := sum(leaf not in there and self.paths[leaf] not in there for leaf in self.leaves):
            have = "has no row, and is" if idle == 1 else "have no row, and are"
            said.append(f"{idle:,} of its {len(self.leaves):,} leaves {have} never answered.")
        return said


def read_tree(path: Readable) -> LabelTree:
    """Read a tree from the columns `child` and `parent` of a file.

    A node without a parent is a root, whether it has a row of its own with an empty parent, or no row.

    Raises:
        InputError: the file cannot be read, lacks these columns, or is not a tree: a node has two parents, is below
            itself or too deep, or contains what separates the levels of a path; or there are too many nodes.
    """
    file = name_of(path)
    parents: dict[str, str | None] = {}
    with open_table(path) as table:
        missing = next((name for name in (CHILD, PARENT) if name not in table.columns), None)
        if missing is not None:
            raise InputError(f"{file} has no column {missing!r}: a tree of labels has {CHILD!r} and {PARENT!r}.")
        for row in table.rows:
            child = _node(row, CHILD)
            parent = _node(row, PARENT) if written(row.fields.get(PARENT)) else None
            if parents.setdefault(child, parent) != parent:
                raise InputError(
                    f"{row.where}: {child!r} is below {_named(parents[child])} above, and below {_named(parent)} here; "
                    "a node has one parent."
                )
            if len(parents) > MOST_LABELS:
                raise InputError(f"{row.where}: a tree has at most {MOST_LABELS:,} nodes.")
    if not parents:
        raise InputError(f"{file} has no node; fill it in, or leave it out.")
    inner = {parent for parent in parents.values() if parent is not None}
    paths = {node: BETWEEN_LEVELS.join(_down_to(node, parents, file)) for node in [*parents, *sorted(inner)]}
    for node, whole in paths.items():
        if wrong := label_problem(whole):
            raise InputError(f"{file}: the path down to {node!r} {wrong}; use shorter names.")
    return LabelTree(file, paths, frozenset(parents.keys() - inner))


def _node(row: Row, column: str) -> str:
    node = required_label(row, column)
    sign = BETWEEN_LEVELS.strip()
    if BETWEEN_LEVELS in f" {node} ":
        raise InputError(f"{row.where}: the {column} {node!r} holds {sign!r}, which separates levels; rename it.")
    return node


def _named(node: str | None) -> str:
    return "nothing" if node is None else repr(node)


def _down_to(node: str, parents: Mapping[str, str | None], file: str) -> list[str]:
    """Return the nodes from the root down to `node`.

    Raises:
        InputError: it is below itself, or too deep.
    """
    found, at = [node], parents.get(node)
    while at is not None:
        if at in found:
            circle = " below ".join(map(repr, [*found[found.index(at) :], at]))
            raise InputError(f"{file} is not a tree: {circle}; give one of them another parent, or none.")
        found.append(at)
        if len(found) > MOST_LEVELS:
            raise InputError(f"{file}: {node!r} has more than {MOST_LEVELS} levels, the maximum.")
        at = parents.get(at)
    return found[::-1]
