"""Check, before a file is written, that it answers as the trained model does.

Both add up the same numbers in another order, so what they may differ by grows with the sizes of what is added up, not
with the sum: long texts say much for and against a label.

Shapes: N texts, T tokens of the longest one, C labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from textcls._util.atomic_write import write_computed
from textcls.errors import ArtifactError, ConfigError
from textcls.model import artifact
from textcls_training.data.arrays import Float64
from textcls_training.data.corpus import Corpus
from textcls_training.export.heads.column_head import ColumnHead
from textcls_training.export.heads.outputs import OUTPUTS
from textcls_training.export.heads.scoring_head import ScoringHead

# Relative to the size of what is added up: 840 units of rounding.
TOLERANCE: Final = 1e-4
PARITY_TEXTS: Final = (
    "",
    "one",
    "My card was charged twice, and nobody answers!",
    "\U0001f469\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3",
    "\u6771\u4eac\u30bf\u30ef\u30fc\u306b\u884c\u304d\u305f\u3044",
    "nai\u0308ve \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
)


@dataclass(frozen=True, slots=True)
class Parity:
    """A trained model, and the answers that its file must give.

    Attributes:
        tables: what its text graph reads.
        head: its scoring head.
        max_tokens: tokens of a text that are read.
        types: words of the training.
        corpus: its texts, the longest of which is also asked; None for none.
    """

    tables: Any
    head: ScoringHead
    max_tokens: int
    types: Sequence[str]
    corpus: Corpus | None = None

    def batches(self) -> Iterator[list[str]]:
        """Yield the texts for both: awkward texts and training words, more tokens than are read, the longest text.

        Long texts come separately: with thousands of labels a batch that is padded to one takes gigabytes.
        """
        yield [*PARITY_TEXTS, " ".join(self.types[:200])]
        yield ["more words than are read " * (self.max_tokens // 5 + 1)]
        if self.corpus is not None and len(self.corpus):
            longest = int(self.corpus.lengths().argmax())
            token = self.corpus.token[self.corpus.start[longest] : self.corpus.start[longest + 1]]
            yield [" ".join(self.corpus.types[i] for i in token.tolist())]

    def check(self, content: bytes) -> None:
        """Ask a model file and the trained model the same texts.

        Raises:
            ConfigError: training diverged: the model's answers are not finite.
            ArtifactError: the model and ONNX Runtime disagree.
        """
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        for texts in self.batches():
            self._compare(session, texts)

    def _compare(self, session: onnxruntime.InferenceSession, texts: Sequence[str]) -> None:
        feed = {artifact.INPUT: np.array(texts, object)}
        if isinstance(self.head, ColumnHead):
            feed |= self.head.feed(len(texts))
        found = session.run(list(OUTPUTS), feed)
        expected = self.head.answers(*self.head.inputs(self.tables, Corpus.of(texts, self.max_tokens)))
        if not all(np.isfinite(ours).all() for ours in expected):
            raise ConfigError(
                "Training diverged: answers are not finite, so nothing was written; lower the learning rate."
            )
        size_N = sizes(*(expected[OUTPUTS.index(name)] for name in ("logits", "contributions")))
        for name, ours, theirs in zip(OUTPUTS, expected, found, strict=True):
            error = disagreement(name, ours, theirs, size_N)
            if not error < TOLERANCE:
                raise ArtifactError(f"Training and ONNX Runtime disagree on {name!r} by {error:.1e}")


def write_checked(content: bytes, path: Path, parity: Parity) -> None:
    """Write a model file to `path` or, if its answers differ from the trained model's, beside it: nothing is lost.

    Raises:
        ConfigError: training diverged; nothing is written.
        ArtifactError: the model and ONNX Runtime disagree.
        SurroundingsError: it cannot be written there; the message says where it was written instead.
    """
    try:
        parity.check(content)
    except ArtifactError as error:
        beside = path.with_name(f"{path.stem}.unverified{path.suffix}")
        write_computed(beside, content)
        raise ArtifactError(
            f"{error} of what is added up, more than {TOLERANCE}, so {path} was not written. The model is in {beside}: "
            "textcls evaluate says how good its answers are. This is a defect of textcls or of the versions installed."
        ) from error
    write_computed(path, content)


def sizes(logit_NC: NDArray[Any], contribution_NTC: NDArray[Any]) -> Float64:
    """Return for each text [N] the largest amount that is added up for a label, at least 1."""
    added_NC = np.maximum(np.abs(logit_NC), np.abs(contribution_NTC).sum(1, dtype=np.float64))
    return np.asarray(1 + added_NC.max(1), np.float64)


def disagreement(name: str, ours: NDArray[Any], theirs: NDArray[Any], size_N: Float64) -> float:
    """Return how far two sides are apart in an output, by the size of what it is rounded with.

    A logit is a sum of numbers, and rounds as such a sum does; a probability moves with its logits, a contribution with
    the part of their sum that it has. Attention is a share, of size 1.

    Args:
        name: the name of the output.
        ours: what the file says of each text; of tokens, those of the longest text.
        theirs: likewise, padded.
        size_N: how much each text adds up, see `sizes`.
    """
    padded = np.zeros_like(theirs)
    padded[tuple(slice(n) for n in ours.shape)] = ours
    apart_N = np.abs(padded - theirs).reshape(len(theirs), -1).max(1)
    return float((apart_N / (1 if name == "attention" else size_N)).max())
