"""One method on one model: explains, checks what comes back, and keeps count of time and calls."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from textcls.errors import TextclsError
from textcls.model.classifier import Classifier
from textcls_torch.studies.explanations.explained_store import ExplainedStore, Kept, key_of
from textcls_torch.studies.explanations.explained_text import ExplainedText
from textcls_torch.studies.explanations.methods import METHODS, Counted
from textcls_training.data.arrays import Float64

T = TypeVar("T")


class MethodRunner:
    """A method at work. A failure of a foreign package names the method and stops the measurement."""

    def __init__(self, name: str, classifier: Classifier, seed: int, store: ExplainedStore | None = None) -> None:
        self.name = name
        self.store = store or ExplainedStore()
        self.identity = (name, classifier.graph.sha256, seed)
        self.model = Counted(classifier)
        self.method = self._guarded(lambda: METHODS[name](self.model, seed), "could not be set up")
        self.seconds, self.calls = 0.0, 0

    def explain(self, text: str, label: int, tokens: int) -> Float64:
        """Return the scores [tokens] of a text: those that are kept, if it was explained before."""
        key = key_of(*self.identity, label, text)
        kept = self.store.get(key)
        if kept is None:
            calls, began = self.model.calls, time.perf_counter()
            scores = self._scores(text, label, tokens)
            kept = Kept(scores, self.model.calls - calls, time.perf_counter() - began)
            self.store.put(key, kept)
        self.calls += kept.calls
        self.seconds += kept.seconds
        return kept.scores

    def _scores(self, text: str, label: int, tokens: int) -> Float64:
        found = self._guarded(lambda: self.method(text, label), f"failed on a text of {tokens} tokens")
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
        if self.store.get(key_of(*self.identity, case.label, case.text)) is None:
            self._scores(case.text, case.label, len(case.spans))
