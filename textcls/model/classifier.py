"""Load a saved model and classify texts: the one path of the command line, the Python API and the server."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from platform import node
from typing import Any, Final, TypeVar, overload

import numpy as np

from textcls._util.in_notebooks import InNotebooks
from textcls.errors import ArtifactError, ConfigError, InputError
from textcls.model import artifact
from textcls.model.columns import unpack
from textcls.model.cost import Cost
from textcls.model.explanation import Explanation, parts_of
from textcls.model.graph import Graph
from textcls.model.label_paths import LabelPaths, full_name
from textcls.model.labels import as_known
from textcls.model.prediction import Prediction, checked_threshold, explanation_of
from textcls.model.prototypes import SupportAttention
from textcls.model.self_test import self_test
from textcls.model.sequences import as_list, pairs, require_sequence, row_of
from textcls.model.sub_token_attribution import SubTokenAttribution
from textcls.model.text_columns import text_of_row

# A text as the model reads it, or a row with the text columns of training.
Text = str | Mapping[str, Any]
Target_T = TypeVar("Target_T")

_ANSWER: Final = ("probabilities", "attention", "known")
_EXPLAINED: Final = (*_ANSWER, "logits", "contributions")


class Classifier(InNotebooks):
    """A saved model, ready to answer. Safe to share between threads.

    ```python
    classifier = Classifier.load("tickets.onnx")
    classifier.predict("my card was charged twice").label
    classifier.predict(["first text", "second text"], explain=True)
    classifier.predict({"subject": "Charged twice", "body": "My card ..."})  # trained on two columns
    ```

    Attributes:
        info: the description of the model in its file.
        path: the path of the file, for messages.
        graph: the graph of the model.
        cost: the estimated cost of its answers.
        tree: the tree of the labels, if they are paths and a text has one label.

    Examples:
        >>> classifier = textcls.Classifier.load("tickets.onnx")
        >>> classifier.predict("my card was charged twice").label
        'billing'
    """

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise InputError("A classifier is loaded from its file, as in textcls.Classifier.load('model.onnx').")
        self.info, self.path = graph.info, graph.path
        self.graph = graph
        self._bias = np.array(graph.info.bias, np.float32)
        thresholds = graph.info.thresholds
        self._thresholds = None if thresholds is None else np.array(thresholds, np.float32)
        self._explained: tuple[str, ...] = _EXPLAINED
        if graph.info.prototypes is not None:
            self._explained += (artifact.SUPPORT,)
        if graph.info.columns:
            self._explained += (artifact.COLUMN_CONTRIBUTIONS,)
        self.cost = Cost.of(graph.info, folded=graph.has_rows)
        # Where it was loaded from: these bytes, or else the file, by its absolute path.
        self._content: bytes | None = None
        self._origin = graph.path.absolute()
        self.tree = None if self.info.several else LabelPaths.of(self.labels, self.info.label_column)

    def __repr__(self) -> str:
        return f"Classifier({str(self.path)!r}, {len(self.labels)} labels)"

    @classmethod
    def load(cls, path: str | Path) -> "Classifier":
        """Load the model file at `path`.

        Raises:
            ArtifactError: there is no such file, it is damaged, not a textcls model, or of a newer format.
        """
        if not isinstance(path, str | Path):
            raise InputError(f"A model file is loaded by its path, not by {type(path).__name__}.")
        path = Path(path)
        found = cls.from_bytes(artifact.read_file(path), path)
        found._content = None
        return found

    def known_as(self, given: str) -> str:
        """Return the label that a name means, which may be its last part or look the same as it; else the name.

        Raises:
            ConfigError: several labels end in this part.
        """
        label = as_known(given, self.labels)
        # With a separator at its end, it names a node.
        if self.tree is None or label.endswith(self.tree.separator.strip()):
            return label
        return full_name(self.labels, self.tree, label)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, path: str | Path) -> "Classifier":
        """Load the model file whose content is `data`; messages name it `path`.

        Raises:
            InputError: `data` is no bytes.
            ArtifactError: it is damaged, not a textcls model, or of a newer format.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InputError(f"The content of a model file is bytes, not {type(data).__name__}.")
        data = bytes(data)
        graph = Graph.from_bytes(data, Path(path))
        self_test(graph)
        found = cls(graph)
        found._content = data
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the path of its file, which is loaded again on arrival.

        It can thus be sent to other processes, and to other machines with the same file at the same path. A model
        loaded from bytes is pickled as these bytes.
        """
        if self._content is not None:
            return Classifier.from_bytes, (self._content, self.path)
        return _arrived, (self._origin, self.graph.sha256)

    def __copy__(self) -> "Classifier":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Classifier":
        # It is immutable.
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of `Prediction.probabilities`."""
        return self.info.labels

    # A str is itself a sequence of str; the first signature that fits is the one that counts.
    @overload
    def predict(  # type: ignore[overload-overlap]
        self, texts: Text, *, explain: bool = False, threshold: float | None = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Iterable[Text], *, explain: bool = False, threshold: float | None = None
    ) -> list[Prediction]: ...

    def predict(
        self, texts: Text | Iterable[Text], *, explain: bool = False, threshold: float | None = None
    ) -> Prediction | list[Prediction]:
        """Classify one text or several.

        Args:
            texts: a text, or a sequence of texts; a sequence gives a list in the same order. A text is a string as the
                model reads it, or a row: a mapping, or a row of a pandas table, with the text columns of training,
                `info.text_columns`, and, if the model reads any, columns beside the text, `info.columns`; those that
                are absent are missing values.
            explain: also return what each token added to each label.
            threshold: score below which the decision is `abstain`; by default the model's own, if it has one. If a text
                may have several labels: the probability from which each is assigned; by default each label's own.

        Raises:
            InputError: something other than text was given, or a row lacks a column.
            ConfigError: the threshold is not a probability.
        """
        threshold = self.info.threshold if threshold is None else checked_threshold(threshold)
        texts = row_of(texts, self.info.text_columns)
        if isinstance(texts, str | Mapping):
            return next(self._predict_batch([self._text(texts, "The row")], explain, threshold))
        require_sequence(texts, "texts")
        try:
            given = as_list(texts)
        except TypeError as error:
            raise InputError(f"A text or a sequence of texts is needed, not {type(texts).__name__}.") from error
        read = [text if isinstance(text, str) else self._text(text, f"Text {i}") for i, text in enumerate(given)]
        answers: list[Prediction | None] = [None] * len(read)
        lengths = [len(text) for text in read]
        # Batch texts of similar length, shortest first, so that there is little padding.
        for which in self.cost.divide(lengths, sorted(range(len(read)), key=lengths.__getitem__)):
            for i, answer in zip(which, self._predict_batch([read[i] for i in which], explain, threshold), strict=True):
                answers[i] = answer
        return [answer for answer in answers if answer is not None]

    def read_rows(self, rows: Iterable[tuple[Text, Target_T]]) -> Iterator[tuple[str, Target_T]]:
        """Yield labelled rows with their texts as the model reads them, which `predict` accepts as well.

        Args:
            rows: pairs of a text, as for `predict`, and its expected result.

        Raises:
            InputError: one is not such a pair, or lacks a column.
        """
        for i, (text, target) in enumerate(pairs(rows)):
            yield self._text(text, f"Row {i}"), target

    def _text(self, given: object, where: str) -> str:
        """Return a text as the model reads it; messages name it `where`."""
        if isinstance(given, str):
            return given
        if isinstance(given := row_of(given, self.info.text_columns), Mapping):
            return text_of_row(given, self.info.text_columns, where, self.info.columns)
        raise InputError(f"{where} is not a string but {type(given).__name__}.")

    @overload
    def explain(self, texts: Text) -> Explanation: ...  # type: ignore[overload-overlap]

    @overload
    def explain(self, texts: Iterable[Text]) -> list[Explanation]: ...

    def explain(self, texts: Text | Iterable[Text]) -> Explanation | list[Explanation]:
        """Explain one text or several: return the explanations of `predict(texts, explain=True)`.

        Raises:
            InputError: as in `predict`.
        """
        answers = self.predict(texts, explain=True)
        if isinstance(answers, Prediction):
            return explanation_of(answers)
        return [explanation_of(answer) for answer in answers]

    def parts(self, text: Text) -> list[SubTokenAttribution]:
        """Attribute below the token: what words, sequences of words and n-grams of unknown words contributed.

        They add up to the contributions of the tokens, label by label.

        Raises:
            ConfigError: the file does not return what its rows add: it mixes tokens, or has many seeds.
            InputError: something other than a text was given.
        """
        if not isinstance(text := row_of(text, self.info.text_columns), str | Mapping):
            require_sequence(text, "texts")
            raise InputError(f"A text is needed, not {type(text).__name__}.")
        if not self.graph.has_rows:
            raise ConfigError(
                f"{self.path} attributes to whole tokens only, since it has {self.info.beyond_rows}; for their parts, "
                "train without."
            )
        return self.graph.sub_token_attributions(self._text(text, "The row"))

    def _support(self, outputs: Mapping[str, Any], number: int) -> SupportAttention | None:
        """Return the attention over support rows of text `number`, if labels are prototypes."""
        prototypes = self.info.prototypes
        return None if prototypes is None else SupportAttention(prototypes, outputs[artifact.SUPPORT][number])

    def _predict_batch(self, texts: list[str], explain: bool, threshold: float | None) -> Iterator[Prediction]:
        read = [self.graph.read(text) for text in texts]
        thresholds = self._thresholds
        if thresholds is not None and threshold is not None:
            thresholds = np.full_like(thresholds, threshold)
        outputs = self.graph.run([given for given, _ in read], self._explained if explain else _ANSWER)
        all_probabilities, all_attention, all_known = (outputs[name] for name in _ANSWER)
        for i, text in enumerate(texts):
            probabilities, attention, known = all_probabilities[i], all_attention[i], all_known[i]
            tokens = int(np.count_nonzero(attention))
            explanation = None
            if explain:
                logits, contributions = outputs["logits"][i], outputs["contributions"][i]
                beside = self.info.columns
                cells, alone = unpack(text, beside) if beside else ([], text)
                explanation = Explanation(
                    alone,
                    self.labels,
                    self._bias,
                    probabilities,
                    logits,
                    attention,
                    contributions,
                    known,
                    thresholds is not None,
                    self._support(outputs, i),
                    cells=parts_of(beside, cells, outputs[artifact.COLUMN_CONTRIBUTIONS][i]) if beside else (),
                    tree=self.tree,
                )
            if thresholds is not None:
                abstains = not (probabilities >= thresholds).any()
            else:
                abstains = threshold is not None and probabilities.max() < threshold
            yield Prediction(
                self.labels,
                probabilities,
                "abstain" if abstains else "accept",
                read[i][1],
                explanation,
                threshold,
                tokens,
                thresholds,
                # After the text there is only padding.
                tokens - int(np.count_nonzero(known[:tokens])),
                self.tree,
            )


def require_classifier(given: object) -> None:
    """Refuse anything that is not a classifier, such as the path of one.

    Raises:
        InputError: it is not a classifier.
    """
    if not isinstance(given, Classifier):
        raise InputError(
            f"A classifier is needed, not {type(given).__name__}; load it, as in textcls.Classifier.load('model.onnx')."
        )


def _arrived(path: Path, sha256: str) -> Classifier:
    """Load a pickled classifier.

    Raises:
        ArtifactError: the file cannot be used, is not on this machine, or is a different one.
    """
    if not path.exists():
        raise ArtifactError(
            f"There is no model file {path} on {node()}, where the classifier was sent; it is pickled as the path of "
            "its file, so put that there under the same path."
        )
    found = Classifier.load(path)
    if found.graph.sha256 != sha256:
        raise ArtifactError(f"{path} on {node()} holds another model than the classifier that was sent there.")
    return found
