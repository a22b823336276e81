"""The exact split of a text's logits over its tokens, and the attributions that all outputs show.

The command line, the HTML page, notebooks and the server all use this one object: `Explanation.attribution` is what
they rank and colour by, `Explanation.as_json` is what they write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from textcls._util.optional_dependencies import above
from textcls.errors import ConfigError
from textcls.model import tokenizer
from textcls.model.columns import Column, names_of_cells, pack, told
from textcls.model.contrast import (
    Float32,
    Float64,
    each_alone,
    evidence_of_all,
    group_against_group,
    one_against_one,
    one_against_rest,
)
from textcls.model.label_paths import LabelPaths, contrasted, full_name, labels_below
from textcls.model.labels import label_number
from textcls.model.prototypes import SupportAttention, SupportWeight
from textcls.model.units import UNITS, Span, Unit, reading_unit, unit_spans

# Number of support rows of a label that are shown.
SHOWN_SUPPORT: Final = 3
# JSON keys of a cell.
_CELL: Final = ("name", "value", "added")


class TokenAttribution(NamedTuple):
    """One token and what it added.

    `text` is the token as the caller wrote it, `source[start:end]`; `attention` its attention probability;
    `contributions` what it added to the logit of each label, signed; `known` is false if the word is
    unknown to the model: it did not occur in training, or was left out to save space.

    Examples:
        >>> answer = textcls.Classifier.load("tickets.onnx").predict("my card was charged twice", explain=True)
        >>> [token.text for token in answer.explanation.tokens]
        ['my', 'card', 'was', 'charged', 'twice']
    """

    text: str
    start: int
    end: int
    attention: float
    contributions: Mapping[str, float]
    known: bool


class CellContribution(NamedTuple):
    """What a cell of a column beside the text added: the number, the category, or a part of the date.

    Attributes:
        name: the name of the column, with the part of a date: `opened (weekday)`.
        value: the value of the cell in readable form; empty if it is missing.
        contributions: what it added to the logit of each label [labels].
        cell: the value of the cell as the model reads it.
    """

    name: str
    value: str
    contributions: Float32
    cell: str


def parts_of(columns: Sequence[Column], cells: Sequence[str], added: Float32) -> tuple[CellContribution, ...]:
    """Return what the cells of a row added; `added` [cells, labels]."""
    return tuple(map(CellContribution, names_of_cells(columns), told(columns, cells), added, cells))


def added_by_parts(explanation: "Explanation") -> Float64:
    """Return what each token, and then each cell, added to each label's logit [tokens + cells, labels]."""
    parts = [explanation.contributions, *(cell.contributions[None] for cell in explanation.cells)]
    return np.concatenate(parts).astype(np.float64)


class Spread(NamedTuple):
    """How much an attribution depends on the model: the range of its values over several models of the same rows.

    Attributes:
        low, high: for each token, the interval that contains the values of 95 of 100 further models [tokens].
        models: how many models there are, including the explained one.
        agreed: how many of them give the same answer as the explained one.
        lowest_score: the smallest probability that any of them gives the label.
        highest_score: the largest one.
    """

    low: Float32
    high: Float32
    models: int
    agreed: int
    lowest_score: float
    highest_score: float

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Whether the interval of each token lies entirely on one side of zero [tokens]."""
        return (self.low > 0) | (self.high < 0)

    def as_json(self) -> dict[str, Any]:
        """Return the spread as plain data."""
        return {
            "models": self.models,
            "level": 0.95,
            "agreed": self.agreed,
            "score": {"low": self.lowest_score, "high": self.highest_score},
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Attribution:
    """One number per token: how strongly it speaks for `label`, against all other labels or against one.

    The same contrast is applied to the contributions, the bias and the logits, so that up to rounding
    `bias + values.sum() == total`, plus the values of `cells` if there are columns beside the text.

    Attributes:
        label: the explained label, or node above labels.
        against: the one label, or node, to compare with; None for all others, weighted by their probabilities.
        values: the contrast of each token's contributions [tokens], in logits.
        bias: the contrast of the bias.
        total: the contrast of the logits of the whole text.
        contrast: the weight of each label [labels]; see `textcls.model.contrast`.
        sizes: how many tokens each value sums over [tokens]; all 1 unless the explanation is grouped by units.
        cells: name, value and contrast of each cell of columns beside the text; they are part of the total.
        spread: the range of the values over several models, if available (`textcls.explain.stability`).
    """

    label: str
    against: str | None
    values: Float32
    bias: float
    total: float
    contrast: Float64
    sizes: NDArray[np.int64]
    spread: Spread | None = None
    cells: tuple[tuple[str, str, float], ...] = ()

    @property
    def means(self) -> Float64:
        """The mean over the tokens of each unit [tokens], by which units are coloured; for tokens the values."""
        return self.values.astype(np.float64) / self.sizes

    @property
    def kind(self) -> str:
        """The name of the values: the evidence for a label, or its difference from another."""
        return "evidence" if self.against is None else "difference"

    def strongest(self, k: int | None = None) -> NDArray[np.int64]:
        """The numbers of the `k` tokens (all by default) with the largest |value|, strongest first; ties in order.

        Raises:
            ConfigError: `k` is negative.
        """
        if k is not None and (type(k) is not int or k < 0):
            raise ConfigError(f"k must be a whole number from 0, not {k!r}.")
        return np.argsort(-np.abs(self.values), kind="stable")[:k]

    def share(self, tokens: NDArray[np.int64] | NDArray[np.bool_]) -> float:
        """The share of these tokens in the sum of |values| of tokens and cells, 0 to 1; 1 if the sum is 0."""
        every = np.abs(self.values.astype(np.float64))
        total = float(every.sum()) + sum(abs(value) for _, _, value in self.cells)
        return min(1.0, float(every[tokens].sum()) / total) if total else 1.0

    def as_json(self) -> dict[str, Any]:
        """The attribution as plain data, `tokens` in reading order."""
        return {
            "label": self.label,
            "against": self.against,
            "bias": self.bias,
            "tokens": self.values.tolist(),
            **({"columns": [dict(zip(_CELL, cell, strict=True)) for cell in self.cells]} if self.cells else {}),
            "total": self.total,
            **({} if self.spread is None else {"stability": self.spread.as_json()}),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The exact split of a text's logits over its tokens.

    `bias[label] + sum(token.contributions[label] for token in tokens) == logits[label]`, up to 32-bit rounding
    (`completeness_error`), plus the contributions of `cells` if there are columns beside the text. It accounts for
    this model's answer and is no claim about causes.

    Attributes:
        text: the classified text.
        labels: all labels, in the model's order.
        bias_values: logits of the empty text [labels].
        probability_values: calibrated probabilities of this text [labels].
        logit_values: logits of this text [labels].
        attention_output: the model's output for this text [T]; zero after the last token.
        contribution_output: likewise [T, labels].
        known_output: likewise [T]; false at a word that is unknown to the model: it did not occur in training, or was
            left out to save space.
        several: whether a text may have several labels, which then do not compete.
        support: the support rows that its prototypes are made of; None if labels are not prototypes.
        unit: the unit of the explanation: `grouped` turns one by tokens into one by words, phrases or sentences.
        groups: for each unit its first token and the one after its last; None if tokens are not grouped.
        cells: what each cell of columns beside the text added; empty if there are none.
        tree: the tree of the labels if they are paths, else None.

    Examples:
        >>> answer = textcls.Classifier.load("tickets.onnx").predict("my card was charged twice", explain=True)
        >>> answer.explanation.completeness_error < 1e-4
        True
    """

    text: str
    labels: tuple[str, ...]
    bias_values: Float32
    probability_values: Float32
    logit_values: Float32
    attention_output: Float32
    contribution_output: Float32
    known_output: NDArray[np.bool_]
    several: bool = False
    support: SupportAttention | None = None
    unit: Unit = "token"
    groups: tuple[Span, ...] | None = None
    cells: tuple[CellContribution, ...] = ()
    tree: LabelPaths | None = None

    def _repr_html_(self) -> str:
        # Called by notebooks.
        return str(above("textcls.display.html.explanation:explanation_fragment")(self.readable()))

    @property
    def row(self) -> str:
        """The text as the model reads it: with its cells, if there are columns beside the text."""
        return self.row_with(self.text)

    def row_for(self, columns: Sequence[Column]) -> str:
        """Return the text as a model with other columns reads it; columns not known here are missing."""
        found = {one.name: one.cell for one in self.cells}
        return pack([found.get(name, "") for name in names_of_cells(columns)], self.text) if columns else self.text

    def row_with(self, text: str) -> str:
        """Return another text with the cells of this row, as the model reads it."""
        return pack([one.cell for one in self.cells], text) if self.cells else text

    @property
    def label(self) -> str:
        """The most probable label."""
        return self.labels[int(self.probability_values.argmax())]

    @property
    def runner_up(self) -> str | None:
        """The second most probable label; None if the model knows only one."""
        return self.most_probable_outside(self.below(self.label))

    @property
    def bias(self) -> dict[str, float]:
        """The logits of the empty text."""
        return dict(zip(self.labels, self.bias_values.tolist(), strict=True))

    @property
    def logits(self) -> dict[str, float]:
        """The logits of this text, before calibration."""
        return dict(zip(self.labels, self.logit_values.tolist(), strict=True))

    @property
    def completeness_error(self) -> float:
        """The largest difference between a logit and the sum of its bias and contributions."""
        added = self.contribution_output.sum(0) + sum(cell.contributions for cell in self.cells)
        return float(np.abs(self.bias_values + added - self.logit_values).max())

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The start and end in `text` of each token that was read, or of each unit."""
        if self.groups is None:
            return tuple(tokenizer.token_spans(self.text, len(self.attention_output)))
        tokens = list(tokenizer.token_spans(self.text, self.groups[-1][1] if self.groups else 0))
        return tuple((tokens[first][0], tokens[behind - 1][1]) for first, behind in self.groups)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of tokens in each unit [tokens]; all 1 if tokens are not grouped."""
        if self.groups is None:
            return np.ones(len(self.spans), np.int64)
        return np.array([behind - first for first, behind in self.groups], np.int64)

    def grouped(self, unit: Unit) -> "Explanation":
        """Return the same explanation by words, phrases or sentences, each with the sum over its tokens, just as exact.

        Everything about tokens then applies to units; `Attribution.means` are the averages over their tokens. The
        segmentation rules are in `textcls.model.units`. A unit is known if any of its tokens is.

        Raises:
            ConfigError: there is no such unit, or the explanation is grouped already.
        """
        if unit not in UNITS:
            raise ConfigError(f"There is no unit {unit!r}; choose from {', '.join(UNITS)}.")
        if unit == "token":
            return self
        if self.groups is not None:
            raise ConfigError(f"The explanation is grouped by {self.unit}s already; group the one by tokens.")
        groups = tuple(unit_spans(self.text, self.spans, unit))
        firsts = [first for first, _ in groups]

        def sums(values: Float32) -> Float32:
            return np.add.reduceat(values, firsts, axis=0, dtype=np.float64).astype(np.float32) if firsts else values

        return replace(
            self,
            attention_output=sums(self.attention),
            contribution_output=sums(self.contributions),
            known_output=np.logical_or.reduceat(self.known, firsts) if firsts else self.known,
            unit=unit,
            groups=groups,
        )

    def readable(self) -> "Explanation":
        """Return the same explanation by the smallest units that people read: by words if tokens are letters."""
        return self if self.groups is not None else self.grouped(reading_unit(self.text))

    def units_as_json(self, labels: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The units as plain data, in reading order: `tokens` are the first token's number and the last one's plus 1.

        Raises:
            ConfigError: there is no such label.
        """
        names = self.labels if labels is None else tuple(labels)
        columns = [self._number(name) for name in names]
        added = self.contributions[:, columns]
        groups = self.groups or [(i, i + 1) for i in range(len(self.spans))]
        rows = zip(groups, self.spans, added.tolist(), (added / self.sizes[:, None]).tolist(), strict=True)
        return [
            {
                "text": self.text[start:end],
                "start": start,
                "end": end,
                "tokens": list(group),
                "contributions": dict(zip(names, sums, strict=True)),
                "means": dict(zip(names, means, strict=True)),
            }
            for group, (start, end), sums, means in rows
        ]

    @property
    def attention(self) -> Float32:
        """Attention probability of each token [tokens]; they sum to 1 unless there are no tokens."""
        return self.attention_output[: len(self.spans)]

    @property
    def contributions(self) -> Float32:
        """What each token added to each label's logit [tokens, labels]."""
        return self.contribution_output[: len(self.spans)]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the model knows the word of each token [tokens]."""
        return self.known_output[: len(self.spans)]

    def attribution(self, label: str | None = None, against: str | None = None) -> Attribution:
        """How strongly each token speaks for `label` (by default the most probable), against all others or one.

        If labels are paths of a tree, either may be a node above labels, which are then weighted by their shares of its
        probability.

        Raises:
            ConfigError: there is no such label, both are the same, or one is above the other.
        """
        name = self.label if label is None else full_name(self.labels, self.tree, label)
        against = None if against is None else full_name(self.labels, self.tree, against)
        contrast = self._contrast(name, against)
        values = self.contributions.astype(np.float64) @ contrast
        bias, total = float(self.bias_values @ contrast), float(self.logit_values @ contrast)
        cells = tuple((cell.name, cell.value, float(cell.contributions @ contrast)) for cell in self.cells)
        return Attribution(name, against, values.astype(np.float32), bias, total, contrast, self.sizes, cells=cells)

    def _contrast(self, name: str, against: str | None) -> Float64:
        """Return the weight of each label in the evidence for a label or node against another [labels]."""
        own = self.below(name)
        if against is None and len(own) == 1:
            return self.contrasts(own)[:, 0]
        own, other = contrasted(self.labels, self.tree, name, against)
        if len(own) == len(other) == 1:
            return one_against_one(len(self.labels), own[0], other[0])
        return group_against_group(self.probability_values, own, other)

    def below(self, name: str) -> list[int]:
        """Return the numbers of the labels that a name stands for: that of a label, or those below a node.

        Raises:
            ConfigError: there is neither such a label nor such a node.
        """
        return labels_below(self.labels, self.tree, name)

    def score(self, name: str) -> float:
        """Return the probability of a label, or the sum over the labels below a node.

        Raises:
            ConfigError: there is neither such a label nor such a node.
        """
        return float(self.probability_values[self.below(name)].sum())

    def evidence_of_all(self) -> Float64:
        """Return the evidence of tokens, then of cells, for all labels at once [tokens + cells, labels]."""
        added = added_by_parts(self)
        return added if self.several else evidence_of_all(self.probability_values, added)

    def contrasts(self, numbers: Sequence[int]) -> Float64:
        """Return the weight of each label in the evidence for the labels with these numbers [labels, numbers].

        A label is compared with all others, or, if a text may have several labels, stands for itself.
        """
        if self.several:
            return each_alone(len(self.labels), numbers)
        return one_against_rest(self.probability_values, numbers)

    def columns(self, attribution: Attribution) -> list[int]:
        """The numbers of the labels whose contributions are shown beside `attribution`: its own, and one other.

        That is the one it is compared with, or else the most probable of the others. If a text may have several labels
        and none is compared with, nothing is shown: the values are the contributions. Nor is there anything for a node,
        which has no contributions of its own.
        """
        if (self.several and attribution.against is None) or attribution.label not in self.labels:
            return []
        other = attribution.against or (self.runner_up if attribution.label == self.label else self.label)
        return [self.labels.index(name) for name in (attribution.label, other) if name in self.labels]

    def evidence(self, label: str | None = None) -> Float32:
        """What each token added for `label` against all others [tokens]; by default for the most probable label.

        That is its contribution to the label minus the mean of those to the others, weighted by their probabilities:
        to first order the change of the label's log-odds, in units of the temperature. With two labels it is the
        difference. If a text may have several labels, it is the contribution to the label itself.

        Raises:
            ConfigError: there is no such label.
        """
        return self.attribution(label).values

    def contrast(self, label: str | None = None, against: str | None = None) -> Float32:
        """Why `label` and not `against`: the difference of each token's contributions to the two [tokens].

        The differences and that of the biases add up to the difference of the logits.

        Args:
            label: by default the most probable label.
            against: by default the most probable of the others.

        Raises:
            ConfigError: there is no such label, both are the same, or the model knows only one.
        """
        name = self.label if label is None else label
        own = self.below(name)
        other = self.most_probable_outside(own) if against is None else against
        if other is None:
            raise ConfigError(f"The model knows only the label {name!r}; there is no other label to contrast it with.")
        return self.attribution(name, other).values

    def top(self, k: int, label: str | None = None) -> tuple[TokenAttribution, ...]:
        """The `k` tokens with the most evidence for or against `label` (by default the winner), strongest first.

        Raises:
            ConfigError: there is no such label, or `k` is negative.
        """
        return self._listed(self.attribution(label).strongest(k))

    def covered(self, k: int, label: str | None = None) -> float:
        """The share of `top(k, label)` in all |evidence|, 0 to 1; 1 for a text without evidence.

        Raises:
            ConfigError: there is no such label, or `k` is negative.
        """
        attribution = self.attribution(label)
        return attribution.share(attribution.strongest(k))

    @property
    def unknown(self) -> tuple[TokenAttribution, ...]:
        """The tokens whose words are unknown to the model, in reading order."""
        return self._listed(np.flatnonzero(~self.known))

    def nearest(self, label: str | None = None, k: int = SHOWN_SUPPORT) -> list[SupportWeight]:
        """The `k` support rows with the most weight for `label` (by default the most probable), if it is a prototype.

        For a node there are none.

        Raises:
            ConfigError: there is no such label.
        """
        numbers = self.below(self.label if label is None else label)
        return [] if self.support is None or len(numbers) > 1 else self.support.top(numbers[0], k)

    @property
    def known_share(self) -> float:
        """The share of the winner's |evidence| that is on words known to the model."""
        return self.attribution().share(self.known)

    @cached_property
    def tokens(self) -> tuple[TokenAttribution, ...]:
        """The tokens in reading order."""
        return self._listed(np.arange(len(self.spans)))

    def as_json(self, labels: Sequence[str] | None = None) -> dict[str, Any]:
        """The explanation as plain data, in the form of the command line, the server and files.

        `completeness_error` is over all labels.

        Args:
            labels: the labels whose bias, logits and contributions to include, in this order; all by default.

        Raises:
            ConfigError: there is no such label.
        """
        if isinstance(labels, str):
            raise ConfigError(f"labels are a list of labels, as in [{labels!r}], not one string.")
        names = self.labels if labels is None else tuple(labels)
        number = {name: i for i, name in enumerate(self.labels)}
        columns = [number[name] if name in number else self._number(name) for name in names]
        text = self.text
        # Not made from `tokens`, for speed: a server does this for each text.
        rows = zip(
            self.spans,
            self.attention.tolist(),
            self.contributions[:, columns].tolist(),
            self.known.tolist(),
            strict=True,
        )
        tokens: list[dict[str, Any]] = [
            {
                "text": text[start:end],
                "start": start,
                "end": end,
                "attention": attention,
                "contributions": dict(zip(names, added, strict=True)),
                "known": known,
            }
            for (start, end), attention, added, known in rows
        ]
        return {
            "label": self.label,
            "runner_up": self.runner_up,
            "bias": dict(zip(names, self.bias_values[columns].tolist(), strict=True)),
            "logits": dict(zip(names, self.logit_values[columns].tolist(), strict=True)),
            "completeness_error": self.completeness_error,
            "tokens": tokens,
            **({"columns": self._cells_as_json(columns, names)} if self.cells else {}),
            **self._support_as_json(),
        }

    def _cells_as_json(self, columns: Sequence[int], names: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {
                "name": cell.name,
                "value": cell.value,
                "contributions": dict(zip(names, cell.contributions[columns].tolist(), strict=True)),
            }
            for cell in self.cells
        ]

    def _support_as_json(self) -> dict[str, Any]:
        if self.support is None:
            return {}
        return {"support": [support.to_json() for support in self.nearest()]}

    def __repr__(self) -> str:
        return f"Explanation(label={self.label!r}, tokens={len(self.spans)})"

    def _listed(self, numbers: NDArray[np.int64]) -> tuple[TokenAttribution, ...]:
        """The tokens with these numbers, in the same order."""
        rows = zip(
            [self.spans[i] for i in numbers.tolist()],
            self.attention[numbers].tolist(),
            self.contributions[numbers].tolist(),
            self.known[numbers].tolist(),
            strict=True,
        )
        return tuple(
            TokenAttribution(self.text[start:end], start, end, share, dict(zip(self.labels, added, strict=True)), known)
            for (start, end), share, added, known in rows
        )

    def most_probable_outside(self, numbers: Sequence[int]) -> str | None:
        """Return the most probable label whose number is not among these; None if there is none."""
        order = np.argsort(-self.probability_values, kind="stable").tolist()
        inside = set(numbers)
        return next((self.labels[i] for i in order if i not in inside), None)

    def _number(self, label: str) -> int:
        return label_number(self.labels, label)
