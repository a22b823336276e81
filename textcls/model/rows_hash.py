"""A hash of labelled rows, by which a model knows those that it has learned from."""

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from textcls.model.label_sets import LabelSet

Target_T = TypeVar("Target_T", str, LabelSet)


class RowsHash:
    """The hash of texts and what each should get, in their order, as rows go by."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def over(self, rows: Iterable[tuple[str, Target_T]]) -> Iterator[tuple[str, Target_T]]:
        """Yield rows, each a text and its label or label set, and take them in."""
        for text, target in rows:
            written = target if isinstance(target, str) else json.dumps(sorted(target.items()))
            for part in (written, text):
                encoded = part.encode("utf-8", "surrogatepass")
                self._digest.update(len(encoded).to_bytes(8, "big") + encoded)
            yield text, target

    def weigh(self, weights: Sequence[float]) -> None:
        """Take in the weights of the rows, where not all count alike."""
        for weight in weights:
            self._digest.update(struct.pack(">d", weight))

    def learned_by(self, training: Mapping[str, Any]) -> bool:
        """Whether a training of this description was of these very rows, in this order, all counting alike."""
        return self.hexdigest() == training.get("data_sha256")

    def hexdigest(self) -> str:
        """Return the hash of all that was taken in."""
        return self._digest.hexdigest()
