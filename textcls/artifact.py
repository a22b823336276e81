"""The saved model: one ONNX file, everything in it. This module alone knows the file's names, metadata and versions.

    input   text           string [B]        one text each, as `tokenizer.clean` leaves it
    outputs probabilities  float  [B, C]     calibrated: softmax(logits / temperature)
            logits         float  [B, C]
            tokens         string [B, T]     lower-cased; "" where padded
            attention      float  [B, T]     share of the seed attention: sums to 1, or is 0 for an empty text
            contributions  float  [B, T, C]  bias_c + sum_t contributions[t, c] == logits[c]
            known          bool   [B, T]     false at a word that training has not seen, or that was left out for size

A file whose rows are values of labels (`textcls.parts`) gives them, too:

            rows           float  [K, B, T, G, X]  of each token: its word, its left and its right bigram
            ngram_rows     float  [U, N, G', X]    n-grams of the U tokens that are not known; not without n-grams
            weights        float  [B, T, G, 1]     what values are multiplied by

The metadata hold one JSON object under `METADATA_KEY`: the fields of `ModelInfo`. No pickle, no side files, and nothing
that differs between two runs of the same training: no time, duration, host, path or thread count.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from textcls.errors import ArtifactError, ConfigError
from textcls.features import FeatureConfig

FORMAT_VERSION: Final = 1
METADATA_KEY: Final = "textcls"
INPUT: Final = "text"
OUTPUTS: Final = ("probabilities", "logits", "tokens", "attention", "contributions", "known")
ROW_OUTPUTS: Final = ("rows", "ngram_rows", "weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a saved model says of itself.

    Attributes:
        labels: names of the classes, in the order of the outputs.
        bias: logits of the empty text, one a label.
        temperature: what the logits are divided by.
        max_tokens: tokens of a text that are read.
        features: which hashed rows a token has.
        model: the configuration of the network (informative; the graph is what counts).
        text_columns: the columns that the texts were trained from; several are joined by a line break.
        label_column: the column of the labels.
        training: rows, data hash, seed, held-out metrics and library versions of the training (informative).
        threshold: score below which an answer is `abstain`; None never abstains.
        task: what kind of answer it is; later versions may add others.
        format_version: version of this layout.
    """

    labels: tuple[str, ...]
    bias: tuple[float, ...]
    temperature: float
    max_tokens: int
    features: FeatureConfig
    model: Mapping[str, Any]
    text_columns: tuple[str, ...]
    label_column: str
    training: Mapping[str, Any]
    threshold: float | None = None
    task: Literal["single-label"] = "single-label"
    format_version: int = FORMAT_VERSION

    def to_metadata(self) -> dict[str, str]:
        """Return the ONNX metadata properties; the same info gives the same text."""
        return {METADATA_KEY: json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], path: Path) -> "ModelInfo":
        """Read the ONNX metadata properties of the file at `path`.

        Raises:
            ArtifactError: not a textcls model, one of a newer format, or damaged metadata.
        """
        if METADATA_KEY not in metadata:
            raise ArtifactError(f"{path} is an ONNX file but not a textcls model: it has no {METADATA_KEY!r} metadata.")
        try:
            found = json.loads(metadata[METADATA_KEY])
            version = int(found["format_version"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise ArtifactError(
                f"{path}: the textcls metadata are damaged ({error}); train or copy the model again."
            ) from error
        if version > FORMAT_VERSION:
            raise ArtifactError(
                f"{path} has format version {version}, and this textcls reads up to {FORMAT_VERSION}: "
                "upgrade with pip install --upgrade textcls."
            )
        try:
            known = {field.name: found[field.name] for field in fields(cls)}
            known |= {name: tuple(known[name]) for name in ("labels", "text_columns")}
            known |= {"bias": tuple(map(float, known["bias"])), "max_tokens": int(known["max_tokens"])}
            known |= {"threshold": None if known["threshold"] is None else float(known["threshold"])}
            if len(known["bias"]) != len(known["labels"]):
                raise ValueError(f"{len(known['labels'])} labels, {len(known['bias'])} numbers in the bias")
            return cls(**{**known, "features": FeatureConfig.from_json(known["features"])})
        except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
            raise ArtifactError(
                f"{path}: the textcls metadata are damaged ({error!r}); train or copy the model again."
            ) from error
