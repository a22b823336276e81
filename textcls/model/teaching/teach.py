"""Examples of labels in, a new model file out, and a report as good as few examples allow.

Shapes: N examples, T tokens; others as in `textcls.model.teaching.scores`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from textcls._util.atomic_write import atomic_write
from textcls.errors import InputError, TooLargeError
from textcls.model import artifact
from textcls.model.classifier import Classifier
from textcls.model.graph import Graph
from textcls.model.labels import label_problem
from textcls.model.sequences import require_sequence
from textcls.model.teaching.centres import Float32
from textcls.model.teaching.scores import padded, scores
from textcls.model.teaching.support import Support, prototypes_of

# Most examples taught at once; for more rows, train a model.
MOST_EXAMPLES: Final = 1000
MOST_LABELS: Final = 100
EXAMPLE_CHARACTERS: Final = 100_000
# Number of examples, evenly from all, that are classified with themselves left out.
_ASKED: Final = 200
UNCALIBRATED: Final = (
    "Scores are calibrated on the training rows only, and a few examples cannot calibrate the score of a taught "
    "label. Treat it as a ranking until textcls evaluate has seen rows of that label."
)


@dataclass(frozen=True, slots=True)
class TaughtLabel:
    """What a label has been taught, and how consistent its examples are.

    Attributes:
        label: its name.
        new: whether the model did not know it before.
        examples: the number of distinct examples.
        unknown: how many of them have no word that the model knows, so that only spelling speaks for them.
        asked: how many were classified with themselves left out of the examples.
        found: how many of these get the label; None if there is no other example of it.
        mistaken: the labels that the rest get, most frequent first, and how often.
    """

    label: str
    new: bool
    examples: int
    unknown: int
    asked: int
    found: int | None
    mistaken: tuple[tuple[str, int], ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "label": self.label,
            "new": self.new,
            "examples": self.examples,
            "without_known_words": self.unknown,
            "asked": self.asked,
            "found": self.found,
            "mistaken_for": dict(self.mistaken),
        }


@dataclass(frozen=True, slots=True)
class Taught:
    """A model that has been taught.

    Attributes:
        content: the content of its file.
        classifier: the model, loaded from it and tested.
        labels: what was taught; empty if labels were taken back.
    """

    content: bytes
    classifier: Classifier
    labels: tuple[TaughtLabel, ...]


def teach(classifier: Classifier, data: bytes, examples: Mapping[str, Sequence[str]]) -> Taught:
    """Teach labels by examples, which replace what each has been taught before; nothing is written.

    A label that the model knows from its training keeps its rows, and gets the examples in addition.

    Args:
        classifier: a model of prototypes.
        data: the content of the file that it was loaded from.
        examples: some texts for each label.

    Raises:
        ConfigError: it is not a model of prototypes, or a label is not valid.
        InputError: there are no examples, or one contains no token.
        TooLargeError: there are too many examples or labels, or one is too long.
        ArtifactError: the file is damaged.
    """
    prototypes_of(classifier.info, classifier.path)
    texts_of = _checked(examples, classifier)
    before = support = Support.of_file(data, classifier.path)
    vectors, unknown = {}, {}
    for label, texts in texts_of.items():
        vectors[label], known_N = embed(classifier, texts)
        unknown[label] = int((~known_N).sum())
        empty = np.flatnonzero(~vectors[label].any(1))
        if len(empty):
            text = texts[empty[0]][:40]
            raise InputError(f"Example {empty[0] + 1} of {label!r} contains no word or symbol: {text!r}.")
        support = support.with_label(label, vectors[label], texts)
    taught = []
    for label, texts in texts_of.items():
        new = label not in before.info.labels
        asked, found, mistaken = _left_out(support, label, vectors[label])
        taught.append(TaughtLabel(label, new, len(texts), unknown[label], asked, found, mistaken))
    return _tested(support, data, classifier.path, tuple(taught))


def take_back(classifier: Classifier, data: bytes, labels: Sequence[str]) -> Taught:
    """Take back what labels have been taught: trained ones are as before, others are removed.

    Args:
        classifier: a model of prototypes.
        data: the content of the file that it was loaded from.
        labels: the labels.

    Raises:
        ConfigError: it is not a model of prototypes, or has no such label.
        NotFoundError: a label has not been taught anything.
        ArtifactError: the file is damaged.
    """
    support = Support.of_file(data, classifier.path)
    for label in labels:
        support = support.without(classifier.known_as(label))
    return _tested(support, data, classifier.path, ())


def write(taught: Taught, path: Path) -> None:
    """Write the file of a taught model; it appears as a whole or not at all.

    Raises:
        SurroundingsError: it cannot be written.
    """
    with atomic_write(path) as file:
        file.write(taught.content)


def embed(classifier: Classifier, texts: Sequence[str]) -> tuple[Float32, Any]:
    """Return the vectors of texts [N, F], of length 1, or 0 without tokens; and which have a known word [N]."""
    graph: Graph = classifier.graph
    lengths = [len(text) for text in texts]
    found: list[tuple[Float32, bool]] = [(np.zeros(0, np.float32), False)] * len(texts)
    for which in classifier.cost.divide(lengths, sorted(range(len(texts)), key=lengths.__getitem__)):
        outputs = graph.run([graph.read(texts[i])[0] for i in which], [artifact.EMBEDDING, "known", "tokens"])
        known_BT = outputs["known"] & (outputs["tokens"] != "")
        for i, vector_F, known in zip(which, outputs[artifact.EMBEDDING], known_BT.any(1), strict=True):
            found[i] = vector_F, bool(known)
    return np.stack([vector_F for vector_F, _ in found]), np.array([known for _, known in found])


def _checked(examples: Mapping[str, Sequence[str]], classifier: Classifier) -> dict[str, list[str]]:
    """Return the distinct examples of each label, written as in the model if it knows the label."""
    if not examples:
        raise InputError("No label to teach: give at least one, with examples.")
    if len(examples) > MOST_LABELS:
        raise TooLargeError(f"{len(examples):,} labels are too many at once; the maximum is {MOST_LABELS}.")
    found = {}
    for given, texts in examples.items():
        if not isinstance(given, str):
            raise InputError(f"A label is a string, not {type(given).__name__}.")
        label, tree = classifier.known_as(given), classifier.tree
        if wrong := label_problem(label) or (tree is not None and tree.problem(label)):
            raise InputError(f"The label {label[:40]!r} {wrong}.")
        require_sequence(texts, "texts")
        if label in found:
            raise InputError(f"The label {given[:40]!r} is there twice: write it in one way.")
        found[label] = _distinct(label, texts)
    return found


def _distinct(label: str, texts: Sequence[str]) -> list[str]:
    if not len(texts):
        raise InputError(f"There are no examples of {label!r}; give at least one (ten are a good start).")
    if len(texts) > MOST_EXAMPLES:
        raise TooLargeError(
            f"{len(texts):,} examples of {label!r} are too many; the maximum is {MOST_EXAMPLES:,}. With that "
            "many, train a model."
        )
    for i, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise InputError(f"Example {i} of {label!r} is not a string but {type(text).__name__}.")
        if len(text) > EXAMPLE_CHARACTERS:
            raise TooLargeError(
                f"Example {i} of {label!r} has {len(text):,} characters, and {EXAMPLE_CHARACTERS:,} is the maximum."
            )
    return list(dict.fromkeys(texts))


def _left_out(support: Support, label: str, vector_NF: Float32) -> tuple[int, int | None, tuple[tuple[str, int], ...]]:
    """Classify examples with themselves left out; return how many, how many rightly, and the wrong labels."""
    labels, scale = support.info.labels, support.prototypes.scale
    number = labels.index(label)
    trained = sum(not row.taught for row in support.prototypes.support[number])
    if len(vector_NF) == 1 and not trained:
        return 0, None, ()
    asked = np.unique(np.linspace(0, len(vector_NF) - 1, _ASKED).astype(np.int64))
    counts = np.array(support.prototypes.counts, np.int64)
    cosine_NC = scores(vector_NF[asked], *padded(np.concatenate(support.of_label), counts), scale).cosine_BC
    own_KF = np.concatenate([support.of_label[number][:trained], vector_NF])
    itself_NK = np.arange(len(own_KF)) == asked[:, None] + trained
    own = scores(vector_NF[asked], own_KF[None], np.ones((1, len(own_KF)), np.bool_), scale, itself_NK[:, None])
    cosine_NC[:, number] = own.cosine_BC[:, 0]
    logit_NC = scale * cosine_NC + np.array(support.info.bias)
    answers = Counter(labels[i] for i in logit_NC.argmax(1).tolist())
    right = answers.pop(label, 0)
    return len(asked), right, tuple(answers.most_common())


def _tested(support: Support, data: bytes, path: Path, labels: tuple[TaughtLabel, ...]) -> Taught:
    content = support.written_to(data, path)
    return Taught(content, Classifier.from_bytes(content, path), labels)
