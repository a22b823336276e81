"""Which texts a model has learned from, as far as its file shows: the smallest of their hashes.

That is a bottom-k sketch (Broder 1997, On the resemblance and containment of documents). A text whose hash is at most
the largest of these is a training text if its hash is among them, almost without exception, and else it is not; of
other texts the file reveals nothing.
"""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

import mmh3
import numpy as np

from textcls.errors import ArtifactError
from textcls.model.artifact import LEARNED_TEXTS, ModelInfo

# Number of hashes kept: at four bytes each 2.7 KB of metadata.
KEPT: Final = 500
_LARGEST: Final = (1 << 32) - 1
# The special characters of URL-safe base64.
_SIGNS: Final = b"-_"


class LearnedTexts(NamedTuple):
    """What a model knows of the texts that it has learned from.

    Attributes:
        hashes: the smallest hashes of the distinct texts, in ascending order.
        recurring: the share of the distinct texts that occur in several rows.
        folded: whether texts that differ only in case and spaces are the same; not in files of an older textcls.
    """

    hashes: tuple[int, ...]
    recurring: float
    folded: bool = True

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Return what to keep of the texts of training rows."""
        counts, most = Counter[int](), _LARGEST
        for text in texts:
            if (number := hash_of(text)) <= most:
                counts[number] += 1
                if len(counts) > 2 * KEPT:
                    most = sorted(counts)[KEPT - 1]
                    counts = Counter({number: count for number, count in counts.items() if number <= most})
        hashes = sorted(counts)[:KEPT]
        return cls(tuple(hashes), sum(counts[number] > 1 for number in hashes) / max(1, len(hashes)))

    def joined(self, other: Self) -> Self:
        """Return what to keep of both sets of texts, with the recurring share of this one only. Hashes of an older
        textcls are of other strings, and are left out.
        """
        if not other.folded:
            return self
        hashes = sorted({*self.hashes, *other.hashes})
        return self._replace(hashes=tuple(one for one in hashes if one <= min(self.most, other.most))[:KEPT])

    @classmethod
    def of_model(cls, info: ModelInfo) -> Self | None:
        """Return what a model file contains; None if it contains nothing.

        Raises:
            ArtifactError: it contains something else.
        """
        found: Mapping[str, Any] | None = info.training.get(LEARNED_TEXTS)
        return None if found is None else cls.of_json(found)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """Return the object from plain data of `to_json`.

        Raises:
            ArtifactError: it is something else.
        """
        try:
            hashes = np.frombuffer(b64decode(found["hashes"], _SIGNS, validate=True), "<u4")
            recurring = float(found["recurring"])
            if len(hashes) > KEPT or not 0 <= recurring <= 1:
                raise ValueError("more hashes than are kept, or no share")
            return cls(tuple(hashes.tolist()), recurring, found.get("folded") is True)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ArtifactError("What the model says of its training texts is damaged; train it again.") from error

    def to_json(self) -> dict[str, Any]:
        """Return this as plain data, for `of_json`."""
        return {
            "hashes": b64encode(np.array(self.hashes, "<u4").tobytes(), _SIGNS).decode(),
            "recurring": round(self.recurring, 4),
            **({"folded": True} if self.folded else {}),
        }

    def hash_of(self, text: str) -> int:
        """Return the hash of a text, made like these."""
        return hash_of(text, folded=self.folded)

    @property
    def most(self) -> int:
        """The largest hash for which it is known whether a text has it; -1 if there is none."""
        return _LARGEST if 0 < len(self.hashes) < KEPT else max(self.hashes, default=-1)


def hash_of(text: str, *, folded: bool = True) -> int:
    """Return the 32-bit hash of a text, ignoring spaces around it and, if `folded`, differences in case and spaces."""
    text = " ".join(text.lower().split()) if folded else text.strip()
    return mmh3.hash(text.encode("utf-8", "surrogatepass"), signed=False)
