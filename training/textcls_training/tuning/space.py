"""What tuning may choose, and what a choice means for given rows.

Numbers are chosen as multiples of what training would take by itself: its rules depend on the number of rows, and a
choice is judged on fewer rows than the model will have in the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from textcls_training.config.resolve import OF_GRADIENTS, resolve
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english_if_known
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts

# The option of a name, or how many times the usual value it is to have.
Chosen = Mapping[str, Any]
# So many texts tell whether they are English.
_ASKED: Final = 1000
# Of numbers in a file that people read.
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Multiple:
    """A number, as a multiple of the usual one between `low` and `high`; 1 is the default."""

    option: str
    low: float
    high: float

    @property
    def default(self) -> float:
        """What stands for the default."""
        return 1.0


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values; None, the first, is the default."""

    option: str
    values: tuple[Any, ...]

    @property
    def default(self) -> None:
        """What stands for the default."""
        return


Dimension = Multiple | OneOf


def space_of(given: LabelledTexts, fixed: Mapping[str, Any], *, macro_f1: bool) -> tuple[Dimension, ...]:
    """Return what is to be chosen for these rows: of all that `textcls train` can be told what was found to matter.

    What is `fixed` is not chosen, nor what cannot be combined with it. Labels of a different weight are for the mean
    over labels alone.
    """
    usual, config, left_out = usual_values(given, fixed), from_options(fixed), {*fixed}
    if config.embedding == "bits":
        left_out |= {"ngrams", "bigrams"}
    if config.impl == "one-vs-rest":
        left_out |= {*OF_GRADIENTS, "vectors"}
    words = Corpus.of(given.texts[:: max(1, len(given.texts) // _ASKED)], TrainConfig().max_tokens)
    every: list[Dimension] = [
        Multiple("epochs", 1 / 3, 3),
        Multiple("table_rate", 1 / 4, 4),
        Multiple("head_rate", 1 / 4, 4),
        OneOf("dim", (None, *(dim for dim in (16, 32, 64, 128) if dim != usual["dim"]))),
        OneOf("ngrams", (None, "none", "2,3", "3,4,5", "2,3,4,5")),
        OneOf("bigrams", (None, False)),
    ]
    if english_if_known(words) is not None and config.beside_vectors() is None:
        every.append(OneOf("vectors", (None, "none", "english")))
    if macro_f1:
        every.append(OneOf("class_weight", (None, "balanced")))
    return tuple(one for one in every if one.option not in left_out)


def usual_values(given: LabelledTexts, fixed: Mapping[str, Any]) -> dict[str, float]:
    """Return what training takes for these rows by itself, of options that are numbers."""
    names, label_rows = sorted(given.labels_in_use()), None
    if given.label_sets is not None:
        weight_R = None if given.weights is None else np.array(given.weights, np.float32)
        label_rows = float(np.median(LabelMatrix.of(given.label_sets, names).mass(weight_R)))
    # How many tokens there are matters for none of these.
    found = resolve(from_options(fixed), given.texts, len(given.texts), len(names), label_rows=label_rows, names=names)
    return {
        "epochs": found.epochs,
        "table_rate": found.optim.table_rate,
        "head_rate": found.optim.rate,
        "dim": found.model.dim,
    }


def options_of(space: Sequence[Dimension], chosen: Chosen, usual: Mapping[str, float]) -> dict[str, Any]:
    """Return the options that a choice means where these are the usual values; what is as usual is left out."""
    found: dict[str, Any] = {}
    for dimension in space:
        value = chosen[dimension.option]
        if isinstance(dimension, Multiple):
            value = _multiple(dimension.option, value, usual[dimension.option])
        if value is not None:
            found[dimension.option] = value
    return found


def _multiple(option: str, times: float, usual: float) -> float | None:
    if times == 1:
        return None
    if option == "epochs":
        epochs = max(1, round(times * usual))
        return None if epochs == usual else epochs
    return float(f"{times * usual:.{_DIGITS}g}")
