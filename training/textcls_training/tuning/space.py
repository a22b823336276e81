"""What tuning may choose, and what a choice means for the given rows.

Numbers are chosen as multiples of what training would choose by itself: its rules depend on the number of rows, and a
choice is judged on fewer rows than the final model will have.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from textcls_training.config.resolve import OF_GRADIENTS, resolve
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english_if_known
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts

# The chosen name, or how many times the usual value the option gets.
Chosen = Mapping[str, Any]
# How many texts decide whether they are English.
_ASKED: Final = 1000
# The digits of numbers in a file that people read.
_DIGITS: Final = 3


# What may be chosen, by option: a multiple of the usual number, with the default 1, or one of several values, with the
# default None.
Space = Mapping[str, BaseDistribution]


def default_of(distribution: BaseDistribution) -> float | None:
    """Return the value that means the default."""
    return 1.0 if isinstance(distribution, FloatDistribution) else None


def space_of(given: LabelledTexts, fixed: Mapping[str, Any], *, macro_f1: bool) -> Space:
    """Return what is to be chosen for these rows: those options of `textcls train` that were found to matter.

    What is `fixed` is not chosen, nor what cannot be combined with it. Label weights are only chosen for the mean over
    labels.
    """
    usual, config, left_out = usual_values(given, fixed), from_options(fixed), {*fixed}
    if config.embedding == "bits":
        left_out |= {"ngrams", "bigrams"}
    if config.impl == "one-vs-rest":
        left_out |= {*OF_GRADIENTS, "vectors"}
    words = Corpus.of(given.texts[:: max(1, len(given.texts) // _ASKED)], TrainConfig().max_tokens)
    dims = [dim for dim in (16, 32, 64, 128) if dim != usual["dim"]]
    every: dict[str, BaseDistribution] = {
        "epochs": FloatDistribution(1 / 3, 3, log=True),
        "table_rate": FloatDistribution(1 / 4, 4, log=True),
        "head_rate": FloatDistribution(1 / 4, 4, log=True),
        "dim": CategoricalDistribution((None, *dims)),
        "ngrams": CategoricalDistribution((None, "none", "2,3", "3,4,5", "2,3,4,5")),
        "bigrams": CategoricalDistribution((None, False)),
    }
    if english_if_known(words) is not None and config.beside_vectors() is None:
        every["vectors"] = CategoricalDistribution((None, "none", "english"))
    if macro_f1:
        every["class_weight"] = CategoricalDistribution((None, "balanced"))
    return {name: one for name, one in every.items() if name not in left_out}


def usual_values(given: LabelledTexts, fixed: Mapping[str, Any]) -> dict[str, float]:
    """Return what training chooses by itself for these rows, for numeric options."""
    names, label_rows = sorted(given.labels_in_use()), None
    if given.label_sets is not None:
        weight_R = None if given.weights is None else np.array(given.weights, np.float32)
        label_rows = float(np.median(LabelMatrix.of(given.label_sets, names).mass(weight_R)))
    # None of these depends on the number of tokens.
    found = resolve(from_options(fixed), given.texts, len(given.texts), len(names), label_rows=label_rows, names=names)
    return {
        "epochs": found.epochs,
        "table_rate": found.optim.table_rate,
        "head_rate": found.optim.rate,
        "dim": found.model.dim,
    }


def options_of(space: Space, chosen: Chosen, usual: Mapping[str, float]) -> dict[str, Any]:
    """Return the options that a choice means, given the usual values; options with their usual value are left out."""
    found: dict[str, Any] = {}
    for name, distribution in space.items():
        value = chosen[name]
        if isinstance(distribution, FloatDistribution):
            value = _multiple(name, value, usual[name])
        if value is not None:
            found[name] = value
    return found


def _multiple(option: str, times: float, usual: float) -> float | None:
    if times == 1:
        return None
    if option == "epochs":
        epochs = max(1, round(times * usual))
        return None if epochs == usual else epochs
    return float(f"{times * usual:.{_DIGITS}g}")
