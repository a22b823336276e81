"""Load a saved model and ask it: the one prediction path under the command line, the Python API and the server."""

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from textcls import abstaining, artifact, parts, tokenizer
from textcls.artifact import ModelInfo
from textcls.errors import ArtifactError, ConfigError, InputError
from textcls.parts import Part, RowOutputs
from textcls.results import Explanation, Prediction

# A batch is padded to its longest text; the second bound keeps its memory to tens of megabytes.
BATCH_TEXTS, BATCH_CHARACTERS = 64, 100_000
_ANSWER: Final = ("probabilities", "attention")
_EXPLAINED: Final = (*_ANSWER, "logits", "contributions", "known")


class Classifier:
    """A saved model, ready to answer. Safe to share between threads.

    classifier = Classifier.load("tickets.onnx")
    classifier.predict("my card was charged twice").label
    classifier.predict(["first text", "second text"], explain=True)
    """

    def __init__(self, session: onnxruntime.InferenceSession, info: ModelInfo, path: Path) -> None:
        self.info = info
        self.path = path
        self._session = session
        self._bias = np.array(info.bias, np.float32)
        self._outputs = {output.name for output in session.get_outputs()}
        # Without this ONNX Runtime computes the outputs that nobody asked for, too.
        self._run_options = onnxruntime.RunOptions()
        self._run_options.only_execute_path_to_fetches = True

    @classmethod
    def load(cls, path: str | Path) -> "Classifier":
        """Load the model file at `path`.

        Raises:
            ArtifactError: there is no such file, it is damaged or not ours, or it is of a newer format.
        """
        path = Path(path)
        return cls.from_bytes(_read(path), path)

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> "Classifier":
        """Load the model file whose content is `data`; messages name it `path`.

        Raises:
            ArtifactError: it is damaged or not ours, or it is of a newer format.
        """
        session = _open_session(data, path)
        info = ModelInfo.from_metadata(session.get_modelmeta().custom_metadata_map, path)
        missing = set(artifact.OUTPUTS) - {output.name for output in session.get_outputs()}
        if missing:
            raise ArtifactError(f"{path} is damaged: its graph has no output {min(missing)!r}.")
        return cls(session, info, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the file that it was loaded from, so that it can go to other processes of this machine."""
        return type(self).load, (self.path,)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of `Prediction.probabilities`."""
        return self.info.labels

    # A str is itself a sequence of str; the first signature that fits is the one that counts.
    @overload
    def predict(  # type: ignore[overload-overlap]
        self, texts: str, *, explain: bool = False, threshold: float | None = None
    ) -> Prediction: ...

    @overload
    def predict(
        self, texts: Sequence[str], *, explain: bool = False, threshold: float | None = None
    ) -> list[Prediction]: ...

    def predict(
        self, texts: str | Sequence[str], *, explain: bool = False, threshold: float | None = None
    ) -> Prediction | list[Prediction]:
        """Classify one text or several.

        Args:
            texts: a text, or a sequence of texts; a sequence gives a list in the same order.
            explain: also say what each token added to each label.
            threshold: score below which the decision is `abstain`; by default the model's own, if it has one.

        Raises:
            InputError: something else than text was given.
            ConfigError: the threshold is no probability.
        """
        threshold = self.info.threshold if threshold is None else abstaining.checked(threshold)
        if isinstance(texts, str):
            return next(self._predict_batch([texts], explain, threshold))
        try:
            texts = list(texts)
        except TypeError as error:
            raise InputError(f"A text or a sequence of texts is needed, not {type(texts).__name__}.") from error
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(f"Text {i} is not a string but {type(text).__name__}.")
        answers: list[Prediction | None] = [None] * len(texts)
        for which in _batches([len(text) for text in texts]):
            for i, answer in zip(
                which, self._predict_batch([texts[i] for i in which], explain, threshold), strict=True
            ):
                answers[i] = answer
        return [answer for answer in answers if answer is not None]

    @overload
    def explain(self, texts: str) -> Explanation: ...  # type: ignore[overload-overlap]

    @overload
    def explain(self, texts: Sequence[str]) -> list[Explanation]: ...

    def explain(self, texts: str | Sequence[str]) -> Explanation | list[Explanation]:
        """Say of one text or several what each token added: the explanations of `predict(texts, explain=True)`.

        Raises:
            InputError: something else than text was given.
        """
        if isinstance(texts, str):
            return self.explain([texts])[0]
        answers = self.predict(texts, explain=True)
        return [answer.explanation for answer in answers if answer.explanation is not None]

    def parts(self, text: str) -> list[Part]:
        """Say what within each token earned its contribution: words, pairs of words, pieces of unknown words.

        The parts add up to the contributions, label by label.

        Raises:
            ConfigError: the model does not say what its rows add: it mixes tokens, or has many seeds.
            InputError: something else than a text was given.
        """
        if not isinstance(text, str):
            raise InputError(f"A text is needed, not {type(text).__name__}.")
        if "rows" not in self._outputs:
            raise ConfigError(f"{self.path} credits whole tokens only; train without a mixing layer, with few seeds.")
        names = [name for name in (*artifact.ROW_OUTPUTS, "known") if name in self._outputs]
        given: NDArray[np.object_] = np.array([tokenizer.clean(text)], object)
        found = dict(zip(names, self._session.run(names, {artifact.INPUT: given}, self._run_options), strict=True))
        spans = tuple(tokenizer.token_spans(text, self.info.max_tokens))
        tokens = len(spans)
        rows = RowOutputs(
            found["rows"][:, 0, :tokens],
            found.get("ngram_rows"),
            found["weights"][0, :tokens, :, 0],
            found["known"][0, :tokens],
        )
        return parts.split(rows, spans, self.labels, self.info.features, norm=self.info.model["attention"] == "norm")

    def _predict_batch(self, texts: list[str], explain: bool, threshold: float | None) -> Iterator[Prediction]:
        names = _EXPLAINED if explain else _ANSWER
        given: NDArray[np.object_] = np.array([tokenizer.clean(text) for text in texts], object)
        outputs = self._session.run(names, {artifact.INPUT: given}, self._run_options)
        for i, text in enumerate(texts):
            probabilities, attention = outputs[0][i], outputs[1][i]
            explanation = None
            if explain:
                logits, contributions, known = outputs[2][i], outputs[3][i], outputs[4][i]
                explanation = Explanation(
                    text, self.labels, self._bias, probabilities, logits, attention, contributions, known
                )
            abstains = threshold is not None and probabilities.max() < threshold
            yield Prediction(
                self.labels,
                probabilities,
                "abstain" if abstains else "accept",
                self._truncated(text),
                explanation,
                threshold,
                int(np.count_nonzero(attention)),
            )

    def _truncated(self, text: str) -> bool:
        limit = self.info.max_tokens
        return len(text) > limit and sum(1 for _ in tokenizer.token_spans(text, limit + 1)) > limit


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of all texts in batches of similar length, shortest first, so that little is padding."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == BATCH_TEXTS or (len(batch) + 1) * lengths[i] > BATCH_CHARACTERS):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _read(path: Path) -> bytes:
    try:
        if path.is_file():
            return path.read_bytes()
    except OSError as error:  # a name too long, a folder that may not be searched, a file that may not be read
        if error.errno == errno.EACCES:
            raise ArtifactError(f"{path} may not be read: give the user of this process the right to.") from error
    raise ArtifactError(f"There is no model file {path}.")


def _open_session(data: bytes, path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # One small graph: a second thread costs more than it brings, and spinning threads starve their neighbours.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Texts come in all lengths; the arena would keep the memory of the longest for ever.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        # Kept for a change of providers, which nobody asks for; it is as large as the file.
        session._model_bytes = None
        return session
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this one.
        raise ArtifactError(
            f"{path} is not a model that ONNX Runtime can read: it is damaged or no ONNX file."
        ) from error
