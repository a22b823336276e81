"""One method on one model: explains, checks what comes back, and keeps count of time and calls."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from faithfulness.explained_text import ExplainedText
from faithfulness.methods import METHODS, Counted
from textcls.errors import TextclsError
from textcls.model.classifier import Classifier
from textcls_training.data.arrays import Float64

T = TypeVar("T")


class MethodRunner:
    """A method at work. A failure of a foreign package names the method and stops the measurement."""

    def __init__(self, name: str, classifier: Classifier, seed: int) -> None:
        self.name = name
        self.model = Counted(classifier)
        self.method = self._guarded(lambda: METHODS[name](self.model, seed), "could not be set up")
        self.seconds, self.calls = 0.0, 0

    def explain(self, text: str, label: int, tokens: int) -> Float64:
        """Return the scores [tokens] of a text."""
        calls, began = self.model.calls, time.perf_counter()
        scores = self._scores(text, label, tokens)
        self.seconds += time.perf_counter() - began
        self.calls += self.model.calls - calls
        return scores

    def _scores(self, text: str, label: int, tokens: int) -> Float64:
        found = self._guarded(lambda: self.method(text, label), f"failed on a text of {tokens} tokens")
        if found.shape != (tokens,) or not np.isfinite(found).all():
            raise TextclsError(f"The method {self.name} gave no finite score for each of {tokens} tokens.")
        return np.asarray(found, np.float64)

    def _guarded(self, call: Callable[[], T], failure: str) -> T:
        try:
            return call()
        except TextclsError:
            raise
        except Exception as error:  # whatever a foreign package may raise
            raise TextclsError(f"The method {self.name} {failure} ({type(error).__name__}: {error}).") from error

    def warm_up(self, case: ExplainedText) -> None:
        """Explain one text that does not count: what is imported and built on first use is not the method's cost."""
        self._scores(case.text, case.label, len(case.spans))
