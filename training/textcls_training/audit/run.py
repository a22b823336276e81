"""The audit of labels: held-out answers, the suspects, and the evidence against their labels.

A model repeats what it has learned from wrong labels. So with one label per row there is a second round of answers,
which learns next to nothing from the rows that the first one doubts. Suspects are those of the mean of both rounds:
what one gets wrong by chance, the other may not.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from textcls.errors import InputError
from textcls.evaluation.comparison.words import reasons
from textcls.evaluation.data_quality.duplicates import near
from textcls.evaluation.data_quality.label_audit import LabelAudit, SuspectRow
from textcls.model.classifier import Classifier
from textcls.model.columns import pack, some_cells
from textcls_training.audit import held_out, label_set_suspects, suspects
from textcls_training.audit.held_out import HeldOut
from textcls_training.audit.label_set_suspects import JudgedSets
from textcls_training.audit.suspects import Judged
from textcls_training.config.settings import TrainConfig
from textcls_training.data.arrays import Float64, Int64
from textcls_training.data.label_matrix import LabelMatrix
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import NOBODY, Callback


def audit(
    given: LabelledTexts,
    config: TrainConfig | None = None,
    callback: Callback = NOBODY,
) -> LabelAudit:
    """Return the rows of `given` with a label that is probably wrong, or missing if they may have several.

    Args:
        given: the rows.
        config: the configuration of the trainings; the default is that of `textcls train`.
        callback: notified of progress.

    Raises:
        InputError: nothing can be learned from the rows.
    """
    names, config = given.label_names(), config or TrainConfig()
    judged: Judged | JudgedSets
    if given.label_sets is None:
        answered = answered_twice(given, config, callback)
        found, judged = answered.both, answered.judge()
    else:
        found = held_out.answer(given, names, config, callback=_Round("held out", callback))
        has_RC = LabelMatrix.of(given.label_sets, names).gold()
        judged = label_set_suspects.judge(found.probability_RC, has_RC, found.judged_R)
    expected, rows = float(judged.wrong_R.sum()), _described(given, names, found, judged)
    return LabelAudit(len(given.texts), int(found.judged_R.sum()), expected, rows, judged.doubt_R.tolist())


@dataclass(frozen=True, slots=True)
class _Round(Callback):
    """A callback for one of several trainings, which leaves out the scores of its epochs."""

    name: str
    told: Callback

    def phase(self, name: str, rows: int) -> None:
        self.told.phase(f"{self.name}, {name}", rows)

    def step(self, rows: int, loss: float | None = None) -> None:
        self.told.step(rows, loss)

    def note(self, text: str) -> None:
        self.told.note(text)


class AnsweredTwice(NamedTuple):
    """Held-out answers of two rounds.

    Attributes:
        names: the labels.
        label_R: the number of each row's label.
        first_RC: probabilities by models that have learned from all rows equally.
        both: the answers of models that have learned next to nothing from doubted rows, with the mean probabilities of
            both rounds, which rank better than those of either.
    """

    names: Sequence[str]
    label_R: Int64
    first_RC: Float64
    both: HeldOut

    def judge(self) -> Judged:
        """Return the findings for each row."""
        return suspects.judge(self.both.probability_RC, self.label_R, self.both.judged_R, self.first_RC)


def answered_twice(given: LabelledTexts, config: TrainConfig, callback: Callback = NOBODY) -> AnsweredTwice:
    """Return the answers of models that have not seen a row for its one label. Arguments and errors as in `audit`."""
    names = given.label_names()
    if len(names) > 1 and sum(count > 1 for count in Counter(given.labels).values()) < 2:
        raise InputError("Labels cannot be audited: fewer than two of them have more than one row; add examples.")
    number = {name: i for i, name in enumerate(names)}
    label_R = np.array([number[label] for label in given.labels], np.int64)
    first_RC = held_out.answer(given, names, config, callback=_Round("round 1 of 2", callback)).probability_RC
    weight_R = suspects.weights(first_RC, label_R)
    second = held_out.answer(given, names, config, weight_R=weight_R, callback=_Round("round 2 of 2", callback))
    both = replace(second, probability_RC=(first_RC + second.probability_RC) / 2)
    return AnsweredTwice(names, label_R, first_RC, both)


def _described(
    given: LabelledTexts, names: Sequence[str], answered: HeldOut, judged: Judged | JudgedSets
) -> tuple[SuspectRow, ...]:
    def target(labels: Sequence[int]) -> str | tuple[str, ...]:
        return names[labels[0]] if given.label_sets is None else tuple(names[label] for label in labels)

    has = [target(judged.own(row)) for row in range(len(given.texts))]
    copies = Counter(zip(map(near, given.texts), has, strict=True))
    rows = []
    for row in judged.suspects.tolist():
        text, own, meant = given.texts[row], judged.own(row), judged.meant(row)
        model, suggested = answered.model, target(meant)
        probability, probability_suggested = judged.chances(row)
        rows.append(
            SuspectRow(
                row=row,
                text=text,
                label=has[row],
                suggested=suggested,
                probability=probability,
                probability_suggested=probability_suggested,
                words=reasons(model, _as_read(given, row, model), *([names[i] for i in some] for some in (meant, own))),
                copies=copies[near(text), suggested],
            )
        )
    return tuple(rows)


def _as_read(given: LabelledTexts, row: int, model: Classifier) -> str:
    """Return a row as read by a model, which has left out the columns that do not help."""
    text, kept = given.texts[row], model.info.columns
    return pack(some_cells(given.cells[row], given.columns, kept), text) if kept else text
