"""The whole measurement: methods over texts, what each figure came to, and how sure it is."""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from faithfulness import faithfulness, methods, plausibility, robustness
from faithfulness.bootstrap import (
    Estimate,
    Statistic,
    difference,
    estimate,
    f1_of_means,
    mean,
    verdict,
)
from faithfulness.explained_text import ExplainedText, explained_texts
from faithfulness.method_runner import MethodRunner
from faithfulness.plausibility import Aligned, Rationale
from faithfulness.removal import REMOVALS, Removal, read_part
from faithfulness.results import (
    BenchmarkResult,
    Comparison,
    MethodResult,
    RationaleCounts,
)
from textcls.errors import ConfigError, InputError
from textcls.model.classifier import Classifier
from textcls.model.units import Unit
from textcls_training.data.arrays import Float64

# Each method explains these texts again, up to four times: robustness is measured on the first ones alone.
ROBUSTNESS_TEXTS: Final = 100
# What people mark in texts with spaces, where a word is a token.
MARKED: Final[tuple[Unit, ...]] = ("token", "phrase", "sentence")
OWN: Final = "contributions"
OTHER_MODEL: Final = "other_model"
VERSIONS_OF: Final = ("textcls", "captum", "lime", "shap", "scikit-learn", "scipy")
_FAITHFULNESS: Final = (
    "comprehensiveness",
    "sufficiency",
    "loo_tau",
    "relative_comprehensiveness",
    "relative_sufficiency",
    "ferret_comprehensiveness",
    "ferret_sufficiency",
)
LOWER_IS_BETTER: Final = frozenset({"sufficiency", "relative_sufficiency", "ferret_sufficiency"})
_STATISTIC: Final[Mapping[str, Statistic]] = {
    f"{figure}{unit}": f1_of_means for figure in ("iou_f1", "iou_f1_merged") for unit in ("", "_phrase", "_sentence")
}

# figure of a group -> values [texts, K] of a method, nan where it is not defined
Values = dict[tuple[str, str], Float64]


def explain_benchmark(
    classifier: Classifier,
    texts: Sequence[str],
    *,
    methods: Sequence[str] | None = None,
    removals: Sequence[Removal] = ("delete",),
    rationales: Sequence[Rationale | None] | None = None,
    other: Classifier | None = None,
    with_robustness: bool = True,
    seed: int = 0,
) -> BenchmarkResult:
    """Measure explanations of `classifier` on `texts`.

    Args:
        classifier: the model that is explained.
        texts: what it is asked about.
        methods: names of `methods.METHODS`; by default all that the model has.
        removals: how tokens are removed where faithfulness is measured.
        rationales: of each text what people marked in it, None where there is nothing.
        other: another model of the same labels, such as one trained with another seed.
        with_robustness: whether texts are explained again with typos, synonyms and repeated, and by `other`, which
            takes most of the time.
        seed: of everything that is left to chance.

    Raises:
        ConfigError: methods, removals or models do not go together, or the model may give several labels a text.
        InputError: no text holds a token.
        TextclsError: a method failed.
    """
    require_one_label(classifier)
    names, left_out = _check(classifier, methods, removals, other)
    if rationales is not None and len(rationales) != len(texts):
        raise ConfigError(f"There are {len(texts)} texts and {len(rationales)} rationales; give None where none is.")
    cases = explained_texts(classifier, texts, classifier.info.max_tokens)
    if not cases:
        raise InputError("No text contains a word or symbol; is this the right text column?")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            run = _Measurement(classifier, cases, names, seed)
            run.explain_all()
            run.measure_faithfulness(removals)
            counts = None if rationales is None else run.measure_plausibility(rationales)
            changed = run.measure_robustness() if with_robustness else {}
            if other is not None:
                changed[OTHER_MODEL] = run.compare_with(other)
    finally:
        torch.set_num_threads(threads)
    return BenchmarkResult(
        model=classifier.path.name,
        labels=classifier.labels,
        texts=len(cases),
        skipped=len(texts) - len(cases),
        tokens=sum(len(case.spans) for case in cases) / len(cases),
        seed=seed,
        removals=tuple(removals),
        methods=tuple(run.result(name) for name in names),
        comparisons=tuple(run.comparisons()),
        left_out=left_out,
        rationales=counts,
        changed=changed,
        versions=_versions(),
    )


def require_one_label(classifier: Classifier) -> None:
    """Refuse a model that may give several labels, and one of prototypes.

    Raises:
        ConfigError: it is one of these.
    """
    if classifier.info.several:
        raise ConfigError(
            f"{classifier.path} may give a text several labels, and explanations are measured of models that give one."
        )
    if classifier.info.prototypes is not None:
        raise ConfigError(
            f"The labels of {classifier.path} are prototypes, and explanations are measured of models with a "
            "linear head; train one without --head prototypes."
        )


def _versions() -> dict[str, str]:
    found = {}
    for name in VERSIONS_OF:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # of a method that was not asked for
            continue
    return found


def _check(
    classifier: Classifier, names: Sequence[str] | None, removals: Sequence[Removal], other: Classifier | None
) -> tuple[list[str], dict[str, str]]:
    if not removals or not set(removals) <= set(REMOVALS) or len(set(removals)) < len(removals):
        raise ConfigError("removals are delete, mask or both, each once.")
    if other is not None and other.labels != classifier.labels:
        raise ConfigError(
            f"The other model's labels are {', '.join(other.labels)}, not {', '.join(classifier.labels)}; "
            "only models of the same labels can be compared."
        )
    chosen, left_out = methods.choose(names, classifier)
    if other is not None:
        methods.choose(chosen, other)
    return chosen, left_out


class _Measurement:
    """The state of a measurement: scores of every method and text, and the values of every figure."""

    def __init__(self, classifier: Classifier, cases: list[ExplainedText], names: list[str], seed: int) -> None:
        self.classifier, self.cases, self.names, self.seed = classifier, cases, names, seed
        self.runners = {name: MethodRunner(name, classifier, seed) for name in names}
        self.scores: dict[str, list[Float64]] = {}
        self.cost: dict[str, tuple[float, float]] = {}
        self.values: dict[str, Values] = {name: {} for name in names}

    def explain_all(self) -> None:
        """Let each method explain each text, one after the other, and note what it costs."""
        for name, runner in self.runners.items():
            runner.warm_up(self.cases[0])
            self.scores[name] = [self._explain(runner, case.text, case.label, len(case.spans)) for case in self.cases]
            self.cost[name] = runner.calls / len(self.cases), 1e3 * runner.seconds / len(self.cases)

    def _explain(self, runner: MethodRunner, text: str, label: int, tokens: int) -> Float64:
        return runner.explain(text, label, tokens)

    def measure_faithfulness(self, removals: Sequence[Removal]) -> None:
        """Ask the model about each text without, and with nothing but, the best tokens of each method."""
        for removal in removals:
            found: dict[str, list[faithfulness.Faithfulness]] = {name: [] for name in self.names}
            for i, case in enumerate(self.cases):
                drops = faithfulness.drops(self.classifier, case, removal)
                of_methods = [self.scores[name][i] for name in self.names]
                measured = faithfulness.measure(self.classifier, case, of_methods, drops, removal)
                for name, one in zip(self.names, measured, strict=True):
                    found[name].append(one)
            for name, measurements in found.items():
                for figure in _FAITHFULNESS:
                    column = [getattr(one, figure) for one in measurements]
                    self.values[name][removal, figure] = np.array(column, np.float64)[:, None]

    def measure_plausibility(self, rationales: Sequence[Rationale | None]) -> RationaleCounts:
        """Compare the scores of each method with what people marked."""
        rows, counts = _align_all(self.cases, rationales, self.classifier.labels)
        share = plausibility.mean_share([aligned for _, aligned, _ in rows])
        for name in self.names:
            scores = [self._scores_for(name, i, label) for i, _, label in rows]
            for unit in MARKED:
                found = [
                    plausibility.measure(aligned, self._by_unit(one, i, unit), share)
                    for one, (i, aligned, _) in zip(scores, rows, strict=True)
                ]
                for figure in found[0] if found else ():
                    key = figure if unit == "token" else f"{figure}_{unit}"
                    self.values[name]["plausibility", key] = np.array([one[figure] for one in found], np.float64)
        return counts

    def _by_unit(self, scores: Float64, i: int, unit: Unit) -> Float64:
        """Scores of the tokens of text `i` as means over its units."""
        return (
            scores if unit == "token" else plausibility.by_unit(scores, self.cases[i].text, self.cases[i].spans, unit)
        )

    def _scores_for(self, name: str, i: int, label: int) -> Float64:
        """Scores for the class that people gave reasons for, which need not be the one that the model answered."""
        case = self.cases[i]
        if label == case.label:
            return self.scores[name][i]
        return self._explain(self.runners[name], case.text, label, len(case.spans))

    def measure_robustness(self) -> dict[str, int]:
        """Explain changed texts; return to how many texts each change applied."""
        cases, changed = self.cases[:ROBUSTNESS_TEXTS], {}
        for kind, (change, change_text) in enumerate(robustness.CHANGES.items()):
            generator = np.random.default_rng([self.seed, kind])
            texts = [change_text(case.text, case.spans, generator) for case in cases]
            changed[change] = sum(text is not None for text in texts)
            for name, runner in self.runners.items():
                self.values[name]["robustness", change] = self._taus(name, runner, texts)
        return changed

    def compare_with(self, other: Classifier) -> int:
        """Explain the texts by another model; return how many they are."""
        cases = self.cases[:ROBUSTNESS_TEXTS]
        for name in self.names:
            # Chance has to fall otherwise, or random scores would agree with themselves.
            runner = MethodRunner(name, other, self.seed + 1)
            self.values[name]["robustness", OTHER_MODEL] = self._taus(name, runner, [case.text for case in cases])
        return len(cases)

    def _taus(self, name: str, runner: MethodRunner, texts: Sequence[str | None]) -> Float64:
        """Return Kendall's tau [texts, 1] of the scores before and after, for the class predicted before."""
        found = np.full((len(texts), 1), math.nan)
        for i, text in enumerate(texts):
            if text is not None:
                text, spans = read_part(text, runner.model.classifier.info.max_tokens)
                after = self._explain(runner, text, self.cases[i].label, len(spans))
                shared = min(len(self.cases[i].spans), len(spans))
                found[i] = faithfulness.tau(self.scores[name][i][:shared], after[:shared])
        return found

    def result(self, name: str) -> MethodResult:
        """Return what a method came to."""
        figures: dict[str, dict[str, Estimate]] = {}
        for (group, figure), values in self.values[name].items():
            found = estimate(values, _STATISTIC.get(figure, mean), self.seed)
            figures.setdefault(group, {})[figure] = found
        return MethodResult(name, *self.cost[name], figures)

    def comparisons(self) -> list[Comparison]:
        """Compare the contributions with every other method."""
        if OWN not in self.names:
            return []
        return [
            self._compare(other, group, figure)
            for other in self.names
            if other != OWN
            for group, figure in self.values[OWN]
        ]

    def _compare(self, other: str, group: str, figure: str) -> Comparison:
        own, theirs = self.values[OWN][group, figure], self.values[other][group, figure]
        found = difference(own, theirs, _STATISTIC.get(figure, mean), self.seed)
        return Comparison(other, group, figure, found, verdict(found, figure not in LOWER_IS_BETTER))


def _align_all(
    cases: Sequence[ExplainedText], rationales: Sequence[Rationale | None], labels: Sequence[str]
) -> tuple[list[tuple[int, Aligned, int]], RationaleCounts]:
    """Return case, alignment and class of each text with a rationale, and what became of the others."""
    rows: list[tuple[int, Aligned, int]] = []
    unmarked = unaligned = unknown = 0
    for i, case in enumerate(cases):
        rationale = rationales[case.row]
        if rationale is None:
            continue
        aligned = plausibility.align(rationale, case.text, case.spans)
        if not any(rationale.gold):
            unmarked += 1
        elif rationale.label is not None and rationale.label not in labels:
            unknown += 1
        elif aligned is None:
            unaligned += 1
        else:
            rows.append((i, aligned, case.label if rationale.label is None else labels.index(rationale.label)))
    inexact = sum(not aligned.exact for _, aligned, _ in rows)
    return rows, RationaleCounts(len(rows), unmarked, unaligned, unknown, inexact)
