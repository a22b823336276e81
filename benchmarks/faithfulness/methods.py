"""Ways to explain an answer of the same saved model: its own contributions, and what else is in use.

A method gives each token of a text a score for one class; the higher, the more the token speaks for it. `lime`, `shap`
and `leave_one_out` remove tokens by `delete`. A method counts the texts that it asks the model about.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal
from zlib import crc32

import numpy as np

from faithfulness import gradients
from faithfulness.gradients import SavedHead, Target
from faithfulness.removal import Span, keep, remove
from textcls.errors import ConfigError
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.explanation import Explanation
from textcls.model.prediction import Prediction
from textcls_training.data.arrays import Float64

# (text, number of the class) -> scores [tokens]. The text is cut where the model stops reading.
Method = Callable[[str, int], Float64]

LIME_SAMPLES: Final = 500
SHAP_CALLS: Final = 500
# What gradients are taken of. On four public sets Integrated Gradients of the log-odds was as good as that of the
# probability or better in every figure, so it is the stronger opponent; gradient x input ranks alike by either.
TARGET: Final[Target] = "log-odds"


class Counted:
    """A classifier that counts the texts it is asked about."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.calls = 0

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        """Answer as the classifier does."""
        self.calls += len(texts)
        return self.classifier.predict(texts)

    def explain(self, text: str) -> Explanation:
        """Answer one text with its contributions."""
        self.calls += 1
        found = self.classifier.predict(text, explain=True).explanation
        if found is None:
            raise RuntimeError("the classifier gave no explanation though it was asked for one")
        return found

    def probability(self, texts: Sequence[str], label: int) -> Float64:
        """Return the probability of one class [texts]."""
        return np.array([answer.probabilities[label] for answer in self.predict(texts)], np.float64)

    def spans(self, text: str) -> tuple[Span, ...]:
        """Return the spans of the tokens that are read."""
        return tuple(tokenizer.token_spans(text, self.classifier.info.max_tokens))


def random(model: Counted, seed: int) -> Method:
    """Scores by chance: what any method must beat. Each text has its own, in whatever order they come."""

    def scores(text: str, _label: int) -> Float64:
        of_text = crc32(text.encode("utf-8", "surrogatepass"))
        return np.random.default_rng([seed, of_text]).random(len(model.spans(text)))

    return scores


def attention(model: Counted, _seed: int) -> Method:
    """The attention probability, which knows no class."""
    return lambda text, _label: model.explain(text).attention.astype(np.float64)


def contributions(model: Counted, _seed: int) -> Method:
    """What each token added for the class against all others, `Explanation.evidence`."""
    labels = model.classifier.labels
    return lambda text, label: model.explain(text).evidence(labels[label]).astype(np.float64)


def contributions_logit(model: Counted, _seed: int) -> Method:
    """What each token added to the logit of the class."""
    return lambda text, label: model.explain(text).contributions[:, label].astype(np.float64)


def leave_one_out(model: Counted, _seed: int) -> Method:
    """How far the probability drops without the token; one call a token, and one more."""

    def scores(text: str, label: int) -> Float64:
        spans = model.spans(text)
        found = model.probability([text, *(remove(text, spans, [i]) for i in range(len(spans)))], label)
        return np.asarray(found[0] - found[1:])

    return scores


def lime(model: Counted, seed: int) -> Method:
    """LIME (Ribeiro et al. 2016) by its own package, 500 samples, all tokens as features.

    The package sees the text "0 1 2 ...", whose words are the numbers of our tokens, so that its features are exactly
    our tokens, each at its place.
    """
    from lime.lime_text import LimeTextExplainer

    def scores(text: str, label: int) -> Float64:
        spans = model.spans(text)

        def ask(numbers: Sequence[str]) -> Float64:
            found = model.probability([keep(text, spans, map(int, kept.split())) for kept in numbers], label)
            return np.stack([1 - found, found], 1)

        explainer = LimeTextExplainer(split_expression=r"\s+", feature_selection="none", random_state=seed)
        words = " ".join(map(str, range(len(spans))))
        settings: dict[str, Any] = {"labels": (1,), "num_features": len(spans), "num_samples": LIME_SAMPLES}
        weights = dict(explainer.explain_instance(words, ask, **settings).as_map()[1])
        return np.array([weights[i] for i in range(len(spans))], np.float64)

    return scores


def shap(model: Counted, seed: int) -> Method:
    """SHAP values (Lundberg and Lee 2017) by its package's permutation explainer: 500 calls, or one permutation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses what its own dependencies have deprecated
        from shap import PermutationExplainer
        from shap.maskers import Independent

    def scores(text: str, label: int) -> Float64:
        spans = model.spans(text)

        def ask(present: Float64) -> Float64:
            return model.probability([keep(text, spans, np.flatnonzero(row).tolist()) for row in present], label)

        state = np.random.get_state()  # the explainer seeds the generator of everybody
        try:
            explainer = PermutationExplainer(ask, Independent(np.zeros((1, len(spans)))), seed=seed)
            calls = max(SHAP_CALLS, 2 * len(spans) + 1)
            found = explainer(np.ones((1, len(spans))), max_evals=calls, silent=True)
        finally:
            np.random.set_state(state)
        return np.asarray(found.values[0], np.float64)

    return scores


def _gradients(which: Literal["gradient_x_input", "integrated_gradients"]) -> Callable[[Counted, int], Method]:
    def make(model: Counted, _seed: int) -> Method:
        saved = SavedHead(model.classifier)

        def scores(text: str, label: int) -> Float64:
            before = saved.calls
            found: Float64 = getattr(saved, which)(text, label, TARGET)
            model.calls += saved.calls - before
            return found

        return scores

    return make


METHODS: Final[dict[str, Callable[[Counted, int], Method]]] = {
    "contributions": contributions,
    "contributions_logit": contributions_logit,
    "attention": attention,
    "gradient_x_input": _gradients("gradient_x_input"),
    "integrated_gradients": _gradients("integrated_gradients"),
    "leave_one_out": leave_one_out,
    "lime": lime,
    "shap": shap,
    "random": random,
}


def choose(names: Sequence[str] | None, classifier: Classifier) -> tuple[list[str], dict[str, str]]:
    """Return the methods to run, and of those left out the reason.

    Args:
        names: the methods asked for; None for all that this model has.
        classifier: the model.

    Raises:
        ConfigError: there is no such method, one is named twice, or one is asked for that the model does not have.
    """
    for name in names or ():
        if name not in METHODS:
            raise ConfigError(f"There is no method {name!r}; choose from {', '.join(METHODS)}.")
    if names is not None and (not names or len(set(names)) < len(names)):
        raise ConfigError("Name at least one method, and each only once.")
    impossible = [] if gradients.foldable(classifier.info) else ["gradient_x_input", "integrated_gradients"]
    refused = [name for name in names or () if name in impossible]
    if refused:
        raise ConfigError(f"The method {refused[0]} cannot be used here: {gradients.NEEDS_FOLDED}.")
    left_out = {} if names else dict.fromkeys(impossible, gradients.NEEDS_FOLDED)
    return [name for name in names or METHODS if name not in left_out], left_out
