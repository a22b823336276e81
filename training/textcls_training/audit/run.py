"""The audit of labels: two rounds of held-out answers, the suspects, and what speaks against their labels.

What a model has learned from wrong labels it repeats. So the second round learns next to nothing from the rows that the
first one doubts. Suspects are those of the mean of both: what one round gets wrong by chance, the other may not.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from textcls.errors import ConfigError, InputError
from textcls.evaluation.data_quality.duplicates import near
from textcls.evaluation.data_quality.label_audit import LabelAudit, SuspectRow
from textcls.jobs import HERE, Engine
from textcls_training.audit import held_out, suspects
from textcls_training.audit.held_out import HeldOut
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float64, Int64
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback

# Words that are told of a suspect.
SHOWN: Final = 3


def audit(
    given: LabelledTexts,
    config: TrainConfig | None = None,
    callback: Callback = NOBODY,
    engine: Engine = HERE,
) -> LabelAudit:
    """Return the rows of `given` whose label is probably wrong.

    Args:
        given: rows of one label each.
        config: of the trainings; the default is that of `textcls train`.
        callback: told of progress.
        engine: who trains.

    Raises:
        ConfigError: rows have several labels.
        InputError: nothing can be learned from the rows.
    """
    answered = answered_twice(given, config or TrainConfig(), callback, engine)
    label_R, found = answered.label_R, answered.both
    judged = suspects.judge(found.probability_RC, label_R, found.judged_R)
    rows = _described(given, answered.names, found, judged)
    expected = float(judged.wrong_R.sum())
    return LabelAudit(len(label_R), int(found.judged_R.sum()), expected, rows, judged.doubt_R.tolist())


class AnsweredTwice(NamedTuple):
    """Held-out answers of two rounds.

    Attributes:
        names: the labels.
        label_R: the number of each row's label.
        first_RC: probabilities by models that have learned from all rows alike.
        both: the answers of models that have learned next to nothing from doubted rows, with the mean probabilities of
            both rounds, which rank better than those of either.
    """

    names: Sequence[str]
    label_R: Int64
    first_RC: Float64
    both: HeldOut


def answered_twice(
    given: LabelledTexts, config: TrainConfig, callback: Callback = NOBODY, engine: Engine = HERE
) -> AnsweredTwice:
    """Return what models that have not seen a row say of it. Arguments and errors as of `audit`."""
    if given.label_sets is not None:
        raise ConfigError("Labels are audited where each row has one, and these rows may have several.")
    names = given.label_names()
    if len(names) > 1 and sum(count > 1 for count in Counter(given.labels).values()) < 2:
        raise InputError("Labels cannot be audited: fewer than two of them have more than one row; add examples.")
    number = {name: i for i, name in enumerate(names)}
    label_R = np.array([number[label] for label in given.labels], np.int64)
    callback.phase("round 1 of 2", len(label_R))
    first_RC = held_out.answer(given, names, config, step=callback.step, engine=engine).probability_RC
    weight_R = suspects.weights(first_RC, label_R)
    callback.phase("round 2 of 2", len(label_R))
    second = held_out.answer(given, names, config, weight_R=weight_R, step=callback.step, engine=engine)
    both = replace(second, probability_RC=(first_RC + second.probability_RC) / 2)
    return AnsweredTwice(names, label_R, first_RC, both)


def _described(
    given: LabelledTexts, names: Sequence[str], answered: HeldOut, judged: suspects.Judged
) -> tuple[SuspectRow, ...]:
    copies, probability_RC = _Copies(given), answered.probability_RC
    rows = []
    for row in judged.suspects.tolist():
        label = int(judged.meant_R[row])
        own, text = given.labels[row], given.texts[row]
        rows.append(
            SuspectRow(
                row=row,
                text=text,
                label=own,
                suggested=names[label],
                probability=float(probability_RC[row, names.index(own)]),
                probability_suggested=float(probability_RC[row, label]),
                words=_words(answered, row, text, names[label], own),
                copies=copies.with_label(text, names[label]),
            )
        )
    return tuple(rows)


def _words(answered: HeldOut, row: int, text: str, suggested: str, own: str) -> tuple[str, ...]:
    """Return the words that speak most for one label over another, by the model that has not seen the row."""
    explanation = answered.models[int(answered.part_R[row])].explain(text)
    contrast_T = explanation.contrast(suggested, own)
    order = np.argsort(-contrast_T, kind="stable")[:SHOWN]
    return tuple(text[slice(*explanation.spans[t])] for t in order.tolist() if contrast_T[t] > 0)


class _Copies:
    """How many near copies of a text have a label."""

    def __init__(self, given: LabelledTexts) -> None:
        self._count: dict[tuple[int, str], int] = {}
        for text, label in zip(given.texts, given.labels, strict=True):
            key = (near(text), label)
            self._count[key] = self._count.get(key, 0) + 1

    def with_label(self, text: str, label: str) -> int:
        return self._count.get((near(text), label), 0)
