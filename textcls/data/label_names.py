"""Other names by which rows may call the labels of a model."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final, NamedTuple, overload

from textcls.data.rows import BadRows
from textcls.errors import ArtifactError
from textcls.model.artifact import LABELS_RENAMED, ModelInfo
from textcls.model.label_paths import LabelPaths
from textcls.model.label_sets import LabelSet, add
from textcls.model.labels import spelling

_WHOLE: Final = re.compile(r"(-?[0-9]+)\.0")


class LabelNames(NamedTuple):
    """Other names of the labels of one or several models.

    Attributes:
        paths: if the labels are paths of a tree, the path of each name by which a row may give a node.
        known: the labels themselves.
        spelt: the label of each spelling that only one label has.
        renamed: the label of each spelling of an old name that training rows had for it.
    """

    paths: Mapping[str, str]
    known: Set[str] = frozenset()
    spelt: Mapping[str, str] = MappingProxyType({})
    renamed: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of_paths(cls, labels: Sequence[str], column: str) -> "LabelNames":
        """Return the names of the nodes of a tree, if the labels in a column are its paths."""
        tree = LabelPaths.of(labels, column)
        return cls({} if tree is None else tree.by_name())

    @classmethod
    def of_state(cls, labels: Sequence[str], column: str, renamed: Mapping[str, str], *, several: bool) -> "LabelNames":
        """Return the names of nodes, and the old names of labels in rows; the arguments are those of `of_labels`."""
        return cls.of_labels(labels, column, renamed, several=several)._replace(spelt={})

    @classmethod
    def of_labels(
        cls, labels: Sequence[str], column: str, renamed: Mapping[str, str], *, several: bool
    ) -> "LabelNames":
        """Return the names of labels, which a row may spell with other case and spaces, or as 1.0 for a known 1:
        pandas writes whole numbers this way in a column with missing values.

        Args:
            labels: the labels.
            column: the column that they came from.
            renamed: the label of each old name that rows had for it.
            several: whether a text may have several labels, which then are not paths.
        """
        paths = {} if several else cls.of_paths(labels, column).paths
        count = Counter(map(_shared, labels))
        spelt = {name: label for label in labels if count[name := _shared(label)] == 1}
        return cls(paths, frozenset(labels), spelt, {_shared(old): new for old, new in renamed.items()})

    @classmethod
    def of_models(cls, *trainings: ModelInfo) -> "LabelNames":
        """Return the names of the labels of models; if two models use a name, the first one's meaning counts."""
        labels = list(dict.fromkeys(label for training in trainings for label in training.labels))
        found = cls.of_labels(labels, "", {}, several=True)
        for training in reversed(trainings):
            one = cls.of_labels(training.labels, training.label_column, _renamed(training), several=training.several)
            found = found._replace(paths={**found.paths, **one.paths}, renamed={**found.renamed, **one.renamed})
        return found

    def but_for(self, names: Iterable[str]) -> "LabelNames":
        """Return a copy without the renamed labels whose old names are among `names`."""
        taken = set(map(_shared, names))
        return self._replace(renamed={old: new for old, new in self.renamed.items() if old not in taken})

    @property
    def merged(self) -> dict[str, str]:
        """The new name of each label of one model that another knows as an old name."""
        found = {label: self.renamed.get(_shared(label), label) for label in self.known}
        # If two names were swapped, neither is the older one.
        return {old: new for old, new in found.items() if old != new == found.get(new, new)}

    @overload
    def target(self, target: str, bad: BadRows) -> str: ...

    @overload
    def target(self, target: LabelSet, bad: BadRows) -> LabelSet: ...

    def target(self, target: str | LabelSet, bad: BadRows) -> str | LabelSet:
        """Return a label, or a label set, under the names that the model has for them."""
        if isinstance(target, str):
            return self.name(target, bad)
        found: dict[str, float] = {}
        for label, share in target.items():
            add(found, {self.name(label, bad): share})
        return found

    def name(self, label: str, bad: BadRows) -> str:
        """Return the model's name for a label; `bad` records a different spelling."""
        if label in self.known:
            return label
        if label in self.paths:
            return self.paths[label]
        if (found := self.renamed.get(_shared(label)) or self.spelt.get(_shared(label))) is None:
            return label
        bad.respelt[label] = found
        return found


def _renamed(training: ModelInfo) -> dict[str, str]:
    """Return the label of each old name that training rows had for it.

    Raises:
        ArtifactError: this entry of the model is damaged.
    """
    found, labels = training.training.get(LABELS_RENAMED, {}), {*training.labels}
    if not isinstance(found, dict) or not all(isinstance(new, str) and new in labels for new in found.values()):
        raise ArtifactError("What the model says of renamed labels is damaged; train it again.")
    return found


def _shared(label: str) -> str:
    """Return the form that all spellings of a label share."""
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else spelling(label)
