"""Labels that are paths of a tree, such as `Production > Bakers`: their places in it, and the probabilities of nodes.

Each level of a tree may have its own column: the label column `group > job` names two, from the root down, whose cells
form the path.

The probability of a node is the sum of those of the labels at and below it, so the nodes of one level add up to one. A
label that ends above a level represents itself there.

Shapes: R rows, C labels, N nodes of a level.
"""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError, InputError
from textcls.model.labels import BETWEEN_LEVELS, label_number, written

Floats = NDArray[np.floating[Any]]
Path = tuple[str, ...]
# A deeper tree means that the separator is wrong.
MOST_LEVELS: Final = 50
# The lowest probability of a sure node, if no threshold is given.
SURE: Final = 0.5
# Sums that differ by less are considered equal.
_SAME: Final = 1e-6
# Most nodes that a message names.
_NAMED: Final = 3


class Node(NamedTuple):
    """A node of the tree, and its probability."""

    path: Path
    score: float


def label_columns(name: str, columns: Container[str]) -> tuple[str, ...]:
    """Return which of a table's `columns` contain its labels: the one with this name, or the levels of a tree in it."""
    return (name,) if name in columns else tuple(name.split(BETWEEN_LEVELS))


def label_cell(fields: Mapping[str, Any], name: str) -> Any:
    """Return the value of a row's label column, None if empty; with levels, the path down to the last one filled in.

    Raises:
        InputError: a level is empty and one below it is not, or one contains the separator, or is a list or similar;
            the message is a clause.
    """
    levels = label_columns(name, fields)
    if len(levels) == 1:
        return fields.get(name)
    cells = {level: fields.get(level) for level in levels}
    for level, value in cells.items():
        if isinstance(value, list | dict | bytes):
            raise InputError(
                f"the level {level!r} of the label is of type {type(value).__name__}, and should be a string"
            )
    parts = [written(value) for value in cells.values()]
    while parts and not parts[-1]:
        parts.pop()
    if "" in parts:
        gap, last = levels[parts.index("")], levels[len(parts) - 1]
        raise InputError(f"the level {gap!r} of the label is empty, and {last!r} below it is not")
    path = BETWEEN_LEVELS.join(parts)
    # Also if a cell starts or ends with `>`.
    if parts and path.split(BETWEEN_LEVELS) != parts:
        odd = next((i for i, part in enumerate(parts) if ">" in part), 0)
        sign = BETWEEN_LEVELS.strip()
        raise InputError(
            f"the level {levels[odd]!r} of the label, {parts[odd]!r}, holds {sign!r}, which separates levels"
        )
    return path


def full_name(labels: Collection[str], tree: "LabelPaths | None", name: str) -> str:
    """Return the label or node that a name means: if the last part of a node is unique, it is enough.

    Raises:
        ConfigError: several nodes have this last part.
    """
    if tree is None or name in labels or not isinstance(name, str):
        return name
    sign = tree.separator.strip()
    plain = name.strip()
    if plain.endswith(sign):
        node = full_name(labels, tree, plain.removesuffix(sign))
        return f"{node} {sign}" if node in labels else node
    node, *others = tree.called.get(plain, [plain])
    if others:
        some = " or ".join(map(repr, [node, *others][:_NAMED]))
        raise ConfigError(f"{plain!r} may be {some}: name one by its whole path.")
    return node


def labels_below(labels: Sequence[str], tree: "LabelPaths | None", name: str) -> list[int]:
    """Return the numbers of the labels that a name stands for: that of a label, or those below a node of the tree.

    A label may be above others: then `A >` is the node, including these, and `A` the label.

    Raises:
        ConfigError: there is neither such a label nor such a node.
    """
    if tree is None or name in labels or not isinstance(name, str):
        return [label_number(labels, name)]
    full = full_name(labels, tree, name)
    if below := [labels.index(full)] if full in labels else tree.below(full):
        return below
    # A name with a similar spelling may be that of a node.
    nodes = (tree.name(node) for level in range(1, tree.depth) for node in tree.nodes(level))
    return [label_number(labels, name, nodes)]


def contrasted(
    labels: Sequence[str], tree: "LabelPaths | None", name: str, against: str | None
) -> tuple[list[int], list[int]]:
    """Return the numbers of the labels of a label or node, and of those it is compared with; None means all others.

    Raises:
        ConfigError: there is no such label, both are the same, one is above the other, or there is nothing left to
            compare a node with.
    """
    own = labels_below(labels, tree, name)
    if against is not None and full_name(labels, tree, name) == full_name(labels, tree, against):
        raise ConfigError(f"{name!r} cannot be contrasted with itself; name another label.")
    if against is None:
        other = np.delete(np.arange(len(labels)), own).tolist()
        if not other and len(own) > 1:
            raise ConfigError(f"All labels of the model stand below {name!r}: name one of those below it.")
        return own, other
    other = labels_below(labels, tree, against)
    if not set(own).isdisjoint(other):
        raise ConfigError(f"Of {name!r} and {against!r} one stands above the other; name two that stand apart.")
    return own, other


class _Level(NamedTuple):
    """A level of a tree.

    Attributes:
        nodes: the nodes of the level.
        of_label_C: the number of the node at or above each label.
        parent_N: the number of the node above each node; the root is 0.
    """

    nodes: list[Path]
    of_label_C: NDArray[np.intp]
    parent_N: NDArray[np.intp]


class LabelPaths:
    """The tree whose paths are a model's labels.

    Args:
        labels: the model's labels, in its order.
        separator: the separator of the parts of a path; white space around it is ignored.

    Raises:
        ConfigError: no label contains the separator, or one has too many levels.
        InputError: a part of one is empty.
    """

    def __init__(self, labels: Sequence[str], separator: str) -> None:
        self.separator = separator
        if not separator or not any(separator in label for label in labels):
            raise ConfigError(f"No label holds the separator {separator!r}: name what stands between the parts of one.")
        self.paths = [self.path(label) for label in labels]
        odd = next((label for label, path in zip(labels, self.paths, strict=True) if not all(path)), None)
        if odd is not None:
            raise InputError(f"The label {odd!r} has an empty part between separators {separator!r}.")
        self.depth = max(map(len, self.paths))
        if self.depth > MOST_LEVELS:
            raise ConfigError(f"With {separator!r} a label has {self.depth:,} levels; at most {MOST_LEVELS} are read.")
        self._roots = {path[0] for path in self.paths}
        self._levels: list[_Level] = []
        for level in range(1, self.depth + 1):
            number: dict[Path, int] = {}
            of_label = [number.setdefault(path[:level], len(number)) for path in self.paths]
            above = {node: i for i, node in enumerate(self.nodes(level - 1))} if level > 1 else {}
            parents = [above.get(node[: level - 1], 0) for node in number]
            self._levels.append(_Level(list(number), np.array(of_label, np.intp), np.array(parents, np.intp)))

    @classmethod
    def of(cls, labels: Sequence[str], column: str) -> "LabelPaths | None":
        """Return the tree of a model's labels, if they came from columns of levels, or most of them are paths.

        Args:
            labels: the model's labels.
            column: the label column they came from.
        """
        holding = sum(BETWEEN_LEVELS in label for label in labels)
        if not holding or (BETWEEN_LEVELS not in column and 2 * holding <= len(labels)):
            return None
        try:
            return cls(labels, BETWEEN_LEVELS)
        except (ConfigError, InputError):
            return None

    @cached_property
    def called(self) -> dict[str, list[str]]:
        """The nodes, written like labels, by their last parts; the name of a root means only the root."""
        found: dict[str, list[str]] = {root: [root] for root in self._roots}
        for node in dict.fromkeys(node for level in range(2, self.depth + 1) for node in self.nodes(level)):
            if node[-1] not in self._roots:
                found.setdefault(node[-1], []).append(self.name(node))
        return found

    def by_name(self) -> dict[str, str]:
        """Return the path, written like a label, of each name that only one node has and that is not a root's."""
        return {name: nodes[0] for name, nodes in self.called.items() if len(nodes) == 1 and name not in self._roots}

    def below(self, name: str) -> list[int]:
        """Return the numbers of the labels at and below a node, written like a label; none if it is not a node."""
        node = self.path(name.strip().removesuffix(self.separator.strip()))
        return [i for i, path in enumerate(self.paths) if path[: len(node)] == node]

    def problem(self, label: str) -> str | None:
        """Return why a label cannot be added to the tree, as a clause to follow it; None if it can, or is in it."""
        sign, path = self.separator.strip(), self.path(label)
        if path in self.paths:
            return None
        if not all(part and not part.startswith(sign) and not part.endswith(sign) for part in path):
            return f"has an empty part between separators {sign!r}"
        split = tuple(part.strip() for part in label.split(sign))
        if split != path and self._is_node(split[:-1]):
            return f"has {sign!r} without the spaces around it: if it is a path, write {self.name(split)!r}"
        if len(path) == 1 and min(map(len, self.paths)) > 1 and not self._is_node(path):
            whole = self.name((*self.paths[0][:-1], *path))
            return f"would stand at the top of the tree, where no other is: write its whole path, such as {whole!r}"
        return None

    def _is_node(self, path: Path) -> bool:
        return any(other[: len(path)] == path for other in self.paths)

    def knows(self, label: str) -> bool:
        """Return whether the tree has the root of a label's path."""
        return self.path(label)[0] in self._roots

    def path(self, label: str) -> Path:
        """Return the parts of a label."""
        return tuple(part.strip() for part in label.split(self.separator))

    def name(self, path: Path) -> str:
        """Return a node, written like a label."""
        return self.separator.join(path)

    def nodes(self, level: int) -> list[Path]:
        """Return the nodes of a level, counted from 1, in the order of the labels."""
        return self._levels[level - 1].nodes

    def probabilities(self, probabilities_RC: Floats, level: int) -> NDArray[np.float64]:
        """Return the probabilities of the nodes of a level [R, N]."""
        nodes, of_label_C, _ = self._levels[level - 1]
        sums_NR = np.zeros((len(nodes), len(probabilities_RC)))
        np.add.at(sums_NR, of_label_C, probabilities_RC.T.astype(np.float64))
        return sums_NR.T

    def deepest(self, probabilities_RC: Floats | Sequence[Floats], threshold: float) -> list[Node | None]:
        """Return the deepest node of each row that is probable enough, descending from the root to the best child.

        Args:
            probabilities_RC: the probabilities of the labels.
            threshold: the lowest probability of a node; rows whose best node of the first level has less get None.
        """
        probabilities_RC = np.asarray(probabilities_RC)
        found: list[Node | None] = [None] * len(probabilities_RC)
        going_R = np.ones(len(found), np.bool_)
        for nodes, at_R, best_R in self.descent(probabilities_RC):
            going_R &= best_R >= threshold - _SAME
            for row in np.flatnonzero(going_R).tolist():
                found[row] = Node(nodes[at_R[row]], float(best_R[row]))
        return found

    def descent(self, probabilities_RC: Floats) -> Iterator[tuple[list[Path], NDArray[np.intp], Floats]]:
        """Yield for each level its nodes, and for each row the number and the probability of the best child of the best
        node above, both -1 if there is no child.
        """
        at_R = np.zeros(len(probabilities_RC), np.intp)
        for level, (nodes, _, parent_N) in enumerate(self._levels, 1):
            scores_RN = self.probabilities(probabilities_RC, level)
            # A label that ends above this level represents itself here, and is not a child.
            ended_N = np.array([len(path) < level for path in nodes])
            scores_RN[(parent_N != at_R[:, None]) | ended_N] = -1.0
            best_R = scores_RN.max(1)
            # A row that has ended does not continue from any node.
            at_R = np.where(best_R < 0, -1, scores_RN.argmax(1))
            yield nodes, at_R, best_R
