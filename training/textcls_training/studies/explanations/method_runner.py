"""One method on one model: explains, checks what comes back, and keeps count of time and calls."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from textcls.classifier import Classifier
from textcls.errors import TextclsError
from textcls_training.data.arrays import Float64
from textcls_training.studies.explanations.explained_text import ExplainedText
from textcls_training.studies.explanations.methods import METHODS, Counted

T = TypeVar("T")


class MethodRunner:
    """A method at work. A failure of a foreign package names the method and stops the measurement."""

    def __init__(self, name: str, classifier: Classifier, seed: int) -> None:
        self.name = name
        self.model = Counted(classifier)
        self.method = self._guarded(lambda: METHODS[name](self.model, seed), "could not be set up")
        self.seconds = 0.0

    def explain(self, text: str, label: int, tokens: int) -> Float64:
        """Return the scores [tokens] of a text."""
        began = time.perf_counter()
        found = self._guarded(lambda: self.method(text, label), f"failed on a text of {tokens} tokens")
        self.seconds += time.perf_counter() - began
        if found.shape != (tokens,) or not np.isfinite(found).all():
            raise TextclsError(
                f"The method {self.name} gave no finite score for each of {tokens} tokens; leave it out with --methods."
            )
        return np.asarray(found, np.float64)

    def _guarded(self, call: Callable[[], T], failure: str) -> T:
        try:
            return call()
        except TextclsError:
            raise
        except Exception as error:  # whatever a foreign package may raise
            raise TextclsError(
                f"The method {self.name} {failure} ({type(error).__name__}: {error}); leave it out with --methods."
            ) from error

    def warm_up(self, case: ExplainedText) -> None:
        """Explain one text that does not count: what is imported and built on first use is not the method's cost."""
        self.explain(case.text, case.label, len(case.spans))
        self.seconds, self.model.calls = 0.0, 0
