"""A model of which everything can be worked out by hand, and one measurement by every method."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher as Dispatcher

from faithfulness.benchmark import explain_benchmark
from faithfulness.explained_text import ExplainedText, explained_texts
from faithfulness.plausibility import Rationale
from faithfulness.results import BenchmarkResult
from textcls import Classifier
from textcls.model import tokenizer
from textcls_training.data.arrays import Float64

TEXTS = ("my card was charged twice", "Where is my parcel? The big box.", "  ", "the app crashes")


@dataclass
class FakeAnswer:
    probabilities: Float64


ADDS = {"a": 0.4, "b": 0.3, "c": 0.1, "not": -0.2}


class Adder:
    """The probability of class 0 is 0.1 and what each token adds; class 1 has the rest."""

    def predict(self, texts: Sequence[str]) -> list[FakeAnswer]:
        first = [0.1 + sum(ADDS.get(token, 0.0) for token in tokenizer.tokenize(text)) for text in texts]
        return [FakeAnswer(np.array([p, 1 - p])) for p in first]


def case_of(text: str, max_tokens: int = 100) -> ExplainedText:
    (case,) = explained_texts(Adder(), [text], max_tokens)
    return case


@pytest.fixture(scope="session", autouse=True)
def interpreted_shap() -> None:
    """Leave the loops of SHAP as they are written: to compile them takes longer than all of these tests do."""
    if find_spec("shap") is None:
        return
    with warnings.catch_warnings(action="ignore"):
        import shap  # noqa: F401

    for name in ("shap.utils._masked_model", "shap.maskers._tabular"):
        for variable, value in list(vars(sys.modules[name]).items()):
            if isinstance(value, Dispatcher):
                setattr(sys.modules[name], variable, value.py_func)


@pytest.fixture(scope="session")
def result(classifier: Classifier) -> BenchmarkResult:
    """All methods, both removals, rationales and another model, on three short texts and one without a token."""
    rationales = [
        Rationale(("my", "card", "was", "charged", "twice"), (False, True, False, True, True)),
        Rationale(("where", "is", "my", "parcel"), (False,) * 4),
        None,
        Rationale(("the", "app", "crashes"), (False, True, True), "technical"),
    ]
    return explain_benchmark(
        classifier, TEXTS, removals=("delete", "mask"), rationales=rationales, other=classifier, seed=3
    )
