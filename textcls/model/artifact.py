"""The saved model: a single, self-contained ONNX file. Its names, metadata and versions are defined here.

The code that makes the graph (the export of `textcls_training`) and the code that reads it (`textcls.model.classifier`,
and `model.mjs` of the page) repeat the names that they use.

    input   text           string [B]        one text each, as `tokenizer.clean` leaves it
    outputs probabilities  float  [B, C]     calibrated: softmax(logits / temperature) with one label per text,
                                             sigmoid(scale * logits + shift) with several
            logits         float  [B, C]
            tokens         string [B, T]     lower-cased; "" where padded
            attention      float  [B, T]     attention probability: sums to 1, or is 0 for an empty text
            contributions  float  [B, T, C]  bias_c + sum_t contributions[t, c] == logits[c]
            known          bool   [B, T]     false if out of vocabulary: in neither training nor vectors, or pruned

A file whose rows are logits of labels (`textcls.model.sub_token_attribution`) also returns them:

            rows           float  [K, B, T, G, X]  for each token: its word, its left and its right bigram; with
                                                   trigrams also the three it is part of, from the left
            ngram_rows     float  [U, N, G', X]    n-grams of the U tokens out of vocabulary; only with n-grams
            weights        float  [B, T, G, 1]     what rows are multiplied by

For a file of prototypes (`textcls.model.prototypes`), C is known only when it is loaded. It also returns:

            embedding      float  [B, F]     the vector of a text that support rows are compared with: length 1, or 0
            support        float  [B, C, K]  attention over the support rows of each label: sums to 1, then zeros

A file of a model that reads columns beside the text (`textcls.model.columns`) has one more input and one more output:

    input   columns        string [B, K]     the cells of each row, "" where missing; numbers first, then categories
    output  column_contributions  float  [B, K, C]  what each cell added: part of the sum that makes the logits

`textcls.model.teaching` replaces three constants of the graph:

            support_rows   float16 [S, F]    the vectors of all support rows, label by label, of length 1
            support_counts int64   [C]       how many each label has
            label_bias     float   [C]

The metadata contain one JSON object under `METADATA_KEY`: the fields of `ModelInfo`. There is no pickle, no side file,
and nothing that differs between two runs of the same training: no time, duration, host, path or thread count.
"""

import errno
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Literal, get_args

from textcls._util.addresses import store_of
from textcls.errors import ArtifactError, ConfigError
from textcls.model.columns import Column, unpack
from textcls.model.features import FeatureConfig
from textcls.model.labels import labels_problem, unpaired_surrogate
from textcls.model.prototypes import Prototypes

# The newest format. The lowest that can express a model is written: 4 with columns beside the text or trigrams, 3 with
# several labels per text where each distinct token counts once, 2 for others with several labels and for prototypes, 1
# for all others.
FORMAT_VERSION: Final = 4
Task = Literal["single-label", "multi-label"]
TASKS: Final = get_args(Task)
# The file in a folder of published versions of a model.
REGISTRY: Final = "registry.json"
METADATA_KEY: Final = "textcls"
# Keys of the metadata about the training.
LABELS_WRITTEN: Final = "labels_written"
LABELS_RENAMED: Final = "labels_renamed"
LEARNED_TEXTS: Final = "learned_texts"
CLUSTERS: Final = "clusters"
LABEL_NAMES: Final = "label_names"
HELD_OUT: Final = "held_out"
TRAINER: Final = "trainer"
INPUT: Final = "text"
OUTPUTS: Final = ("probabilities", "logits", "tokens", "attention", "contributions", "known")
ROW_OUTPUTS: Final = ("rows", "ngram_rows", "weights")
EMBEDDING: Final = "embedding"
SUPPORT: Final = "support"
# Names of a model with columns beside the text.
COLUMNS: Final = "columns"
COLUMN_CONTRIBUTIONS: Final = "column_contributions"
# Constants in the graph of a model of prototypes.
SUPPORT_ROWS: Final = "support_rows"
SUPPORT_COUNTS: Final = "support_counts"
LABEL_BIAS: Final = "label_bias"
# Limits of a model file: ONNX itself cannot store more than 2 GiB in one file.
MOST_BYTES: Final = 2_000_000_000
METADATA_CHARACTERS: Final = 16_000_000
MOST_TOKENS: Final = 1_000_000
EXAMPLE_CHARACTERS: Final = 10_000
LARGEST: Final = 3e38
_OF_SEVERAL: Final = ("scale", "shift", "thresholds")
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """The description of a saved model, stored in its file.

    Attributes:
        labels: names of the classes, in the order of the outputs.
        bias: logits of the empty text, one per label.
        temperature: what the logits are divided by.
        max_tokens: the number of tokens of a text that are read.
        features: which hashed rows a token has.
        model: the configuration of the network. The graph is decisive, but `attention` is guaranteed, since sub-token
            attributions are computed differently if it is `norm`; gradients rebuild the network from all keys.
        text_columns: the columns that the texts were trained from; several are joined by a line break.
        label_column: the column of the labels.
        training: how the model was trained. `rows`, `data_sha256`, `seed`, `epochs`, `held_out_rows`,
            `held_out_accuracy` and `versions` are guaranteed, and shown by `inspect`; so are `shares`, the ensemble
            weights of the views, and `seeds`, how many each view has if one has machines for a second, which gradients
            read. If word vectors were given, `vectors` describes them: `source`, `licence`, `how`, `sha256`, `words`,
            `dim`, `known_tokens` and `ensemble_weight`. With several labels per text there are `held_out_micro_f1` and
            `held_out_macro_f1` instead of `held_out_accuracy`, and `labels_written` says how the labels were written
            (`textcls.data.TargetOptions`). `labels_renamed` maps other names of labels in the rows to the labels, if a
            file renamed some. If the labels are clusters, learned without labels, `held_out_accuracy` is None and
            `clusters` describes them: `objective`, `information` in nats, and `agreement`, the share of held-out texts
            whose two halves are in the same cluster. If labels were learned from their names alone, it is None, too,
            and `label_names` describes them: `by`, whose vectors know the names, `descriptions`, the words of each
            label, and `agreement`, the share of held-out texts answered with the label whose name is nearest.
            `held_out` counts the answers to held-out rows (`textcls.evaluation.drift.summary`), if there were any and
            a text has one label. `learned_texts` has hashes of some training texts (`textcls.model.learned_texts`).
            Other keys may come and go.
        threshold: score below which an answer is `abstain`; None never abstains.
        task: whether a text has one label, or may have several, or none.
        format_version: version of this layout: 4 with columns beside the text or trigrams, 3 with several labels per
            text where each distinct token counts once, 2 for others with several labels and for prototypes, else 1.
        scale: with several labels, what the logit of each is multiplied by.
        shift: likewise: what is added to it; the sum is the log-odds of the label.
        thresholds: likewise: the probability from which each is assigned.
        prototypes: the support rows of the labels, if labels are prototypes.
        columns: the columns beside the text that the model reads; empty for most models.
        example: an example of the texts that the model is for, given at training; None without one.

    Examples:
        >>> textcls.Classifier.load("tickets.onnx").info.text_columns
        ('text',)
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
    task: Task = "single-label"
    format_version: int = 1
    scale: tuple[float, ...] | None = None
    shift: tuple[float, ...] | None = None
    thresholds: tuple[float, ...] | None = None
    prototypes: Prototypes | None = None
    example: str | None = None
    columns: tuple[Column, ...] = ()

    @property
    def norm(self) -> bool:
        """Whether the attention is `norm`, in which tokens also weaken each other."""
        return self.model.get("attention") == "norm"

    @property
    def beyond_rows(self) -> str:
        """The reasons why words have no weights of their own in this model."""
        usual = {"mixing": "none", "attention": "norm", "embedding": "rows", "seeds": 1}
        found = [f"{name} {self.model[name]}" for name in usual if self.model.get(name, usual[name]) != usual[name]]
        return " and ".join(found if self.prototypes is None else ["prototypes", *found]) or "another graph"

    @property
    def several(self) -> bool:
        """Whether a text may have several labels, or none."""
        return self.task == "multi-label"

    @property
    def of_texts_alone(self) -> "ModelInfo":
        """The same description for rows that are read as texts only, without columns beside them."""
        return replace(self, columns=())

    def text_of(self, row: str) -> str:
        """Return the text of a row as the model reads it, without its cells (`textcls.model.columns.pack`)."""
        return unpack(row, self.columns)[1] if self.columns else row

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        found = asdict(replace(self, prototypes=None))
        left_out = ("prototypes", *(() if self.several else _OF_SEVERAL))
        left_out += tuple(name for name in ("example", "columns") if not getattr(self, name))
        found = {name: value for name, value in found.items() if name not in left_out}
        found["features"] = self.features.to_json()
        return found | ({"prototypes": self.prototypes.to_json()} if self.prototypes is not None else {})

    def to_metadata(self) -> dict[str, str]:
        """Return the ONNX metadata properties; the same info gives the same text."""
        return {METADATA_KEY: json.dumps(self.to_json(), ensure_ascii=False, sort_keys=True)}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], path: Path) -> "ModelInfo":
        """Read the ONNX metadata properties of the file at `path`, and check each of them.

        Raises:
            ArtifactError: it is not a textcls model or of a newer format, or its metadata are damaged.
        """
        if METADATA_KEY not in metadata:
            raise ArtifactError(
                f"{path} is an ONNX file but not a textcls model: it lacks the {METADATA_KEY!r} metadata."
            )
        try:
            found = _json_object(metadata[METADATA_KEY])
            version = _whole(found, "format_version", 1)
            if version <= FORMAT_VERSION:
                return cls(**_checked(found))
        except KeyError as error:
            raise _damaged(path, f"there is no {error}") from error
        except (ValueError, TypeError, OverflowError, RecursionError, ConfigError) as error:
            raise _damaged(path, str(error)) from error
        raise ArtifactError(
            f"{path} has format version {version}, and this textcls reads up to {FORMAT_VERSION}: "
            "upgrade with pip install --upgrade textcls."
        )


def example_problem(text: str) -> str | None:
    """Return what is wrong with a text to be stored as an example; None if nothing is."""
    if not text.strip():
        return "is empty"
    if len(text) > EXAMPLE_CHARACTERS:
        return f"has {len(text):,} characters; the maximum is {EXAMPLE_CHARACTERS:,}"
    if unpaired_surrogate(text):
        return "holds half a character (an unpaired surrogate), which has no UTF-8 form"
    return None


def _damaged(path: Path, why: str) -> ArtifactError:
    return ArtifactError(f"{path}: the textcls metadata is damaged ({why.rstrip('.')}); train or copy the model again.")


def _json_object(text: str) -> dict[str, Any]:
    if len(text) > METADATA_CHARACTERS:
        raise ValueError(f"they have {len(text):,} characters, and {METADATA_CHARACTERS:,} are the most")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"they are a JSON {type(found).__name__} and no object")
    if unpaired_surrogate(json.dumps(found, ensure_ascii=False)):
        raise ValueError("they hold an unpaired surrogate, which has no UTF-8 form")
    return found


def _checked(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `ModelInfo` in `found`.

    Raises:
        KeyError: one is missing.
        ValueError: one is not what it should be.
        ConfigError: likewise.
    """
    labels = _strings(found, "labels")
    if wrong := labels_problem(labels):
        raise ValueError(wrong)
    bias = tuple(_number(value, "bias") for value in _items(found, "bias"))
    if len(bias) != len(labels):
        raise ValueError(f"{len(labels)} labels, {len(bias)} numbers in the bias")
    temperature = _number(found["temperature"], "temperature")
    if not temperature > 0:
        raise ValueError(f"the temperature is {temperature:g}, and must be above 0")
    threshold = None if found["threshold"] is None else _number(found["threshold"], "threshold")
    if threshold is not None and not 0 <= threshold <= 1:
        raise ValueError(f"the threshold is {threshold:g}, and must be a probability")
    task = found["task"]
    version = _whole(found, "format_version", 1)
    prototypes = "prototypes" in found
    several = task == "multi-label"
    columns = tuple(Column.from_json(one) for one in _items(found, "columns")) if "columns" in found else ()
    features = FeatureConfig.from_json(_object(found, "features"))
    versions = (4,) if columns or features.trigrams else (2, 3) if several else (1 + prototypes,)
    if task not in TASKS or (prototypes and version != 2) or version not in versions:
        raise ValueError("the task is none that this version of textcls knows")
    example = found.get("example")
    if example is not None and (not isinstance(example, str) or example_problem(example)):
        raise ValueError("the example is not a valid text")
    text_columns = _strings(found, "text_columns")
    if not text_columns or not isinstance(found["label_column"], str):
        raise ValueError("text_columns and label_column must name columns")
    return {
        "labels": labels,
        "bias": bias,
        "temperature": temperature,
        "max_tokens": _whole(found, "max_tokens", 1, MOST_TOKENS),
        "features": features,
        "model": _object(found, "model"),
        "text_columns": text_columns,
        "label_column": found["label_column"],
        "training": _object(found, "training"),
        "threshold": threshold,
        "task": task,
        "format_version": version,
        "example": example,
        "columns": columns,
        **(_of_several(found, len(labels)) if task == "multi-label" else {}),
        **({"prototypes": Prototypes.from_json(_object(found, "prototypes"), len(labels))} if prototypes else {}),
    }


def _of_several(found: Mapping[str, Any], labels: int) -> dict[str, Any]:
    """Return the additional fields of models with several labels per text."""
    checked = {}
    for name in _OF_SEVERAL:
        numbers = tuple(_number(value, name) for value in _items(found, name))
        if len(numbers) != labels:
            raise ValueError(f"{labels} labels, {len(numbers)} numbers in {name}")
        checked[name] = numbers
    if not min(checked["scale"]) > 0:
        raise ValueError("scale contains a number that is not above 0")
    if not all(0 <= number <= 1 for number in checked["thresholds"]):
        raise ValueError("thresholds contain a number that is not a probability")
    return checked


def _object(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = found[name]
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object")
    return value


def _items(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found[name]
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    return value


def _strings(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = _items(found, name)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} contains something that is not a string")
    return tuple(values)


def _number(value: object, name: str) -> float:
    # In Python True and False are integers. The bound is that of 32-bit floats.
    if type(value) not in (int, float) or not abs(float(value)) <= LARGEST:  # type: ignore[arg-type]
        raise ValueError(f"{name} holds {str(value)[:40]!r}, which is not a finite number")
    return float(value)  # type: ignore[arg-type]


def _whole(found: Mapping[str, Any], name: str, least: int, most: int | None = None) -> int:
    value = found[name]
    if type(value) is not int or value < least or (most is not None and value > most):
        bounds = f"from {least} on" if most is None else f"from {least} to {most:,}"
        raise ValueError(f"{name} is {str(value)[:40]!r}, and must be a whole number {bounds}")
    return value


def read_file(path: Path, most: int = MOST_BYTES, advice: str = "") -> bytes:
    """Return the content of the model file at `path`.

    Args:
        path: a regular file, or a link to one.
        most: the largest size in bytes.
        advice: ends the sentence that says it is larger.

    Raises:
        ArtifactError: there is no such file, it cannot be read, it is not a regular file but for example a device or a
            pipe, it is too large, or it is still being written.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            if (path / REGISTRY).is_file():
                raise ArtifactError(
                    f"{path} is a registry: textcls versions {path} says which version is promoted; name its file, "
                    f"{path / 'NUMBER' / 'model.onnx'}, or serve the registry."
                )
            inside = sorted([*path.glob("*.onnx"), *path.glob("*/*.onnx")])
            such = f", such as {inside[0]}" if inside else ""
            raise ArtifactError(f"{path} is a folder: name a model file in it{such}.")
        if stat.S_ISREG(mode):
            # It may have been replaced by a pipe since; opening that would wait for a writer.
            with open(path, "rb", opener=_without_waiting) as file:
                return _content(file, path, most, advice)
    except OSError as error:
        if error.errno in _NO_FILE:
            if store := store_of(path):
                raise ArtifactError(
                    f"A model is a file of this machine, and {store}... an address: textcls fetch copies it."
                ) from error
            raise ArtifactError(f"There is no model file {path}.") from error
        if error.errno == errno.EACCES:
            raise ArtifactError(f"{path} cannot be read: give this process's user permission to.") from error
        raise ArtifactError(f"{path} cannot be read: {os.strerror(error.errno or 0)}.") from error
    except ValueError as error:  # a NUL in the name
        raise ArtifactError(f"There is no model file {str(path)!r}.") from error
    raise ArtifactError(f"{path} is not a regular file; copy the model to one.")


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def _content(file: IO[bytes], path: Path, most: int, advice: str) -> bytes:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactError(f"{path} is not a regular file; copy the model to one.")
    if found.st_size > most:
        raise ArtifactError(f"{path} has {found.st_size:,} bytes, and a model file may have at most {most:,}{advice}.")
    data = file.read(found.st_size + 1)
    if len(data) != found.st_size:
        raise ArtifactError(f"{path} is still being written; move a finished file into its place.")
    return data
