"""What can be compared: a model file, a file of answers such as `textcls predict` writes, or a service."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from textcls.batch.chunks import ROWS
from textcls.classifier import Classifier
from textcls.errors import ConfigError, InputError, SurroundingsError

Float32 = NDArray[np.float32]

# Texts of one request, which every service takes.
REQUEST_TEXTS: Final = 64
REQUEST_SECONDS: Final = 60
MOST_ANSWER_BYTES: Final = 64 * 2**20
# Columns that hold an answer, the first that is there.
ANSWER_COLUMNS: Final = ("predicted_label", "prediction", "predicted", "label")
KEY_VARIABLE: Final = "TEXTCLS_API_KEY"


class Answers(NamedTuple):
    """The answers of a side to all rows.

    Attributes:
        labels: of each row.
        probabilities: of each row and label [rows, labels of the side]; None where they are not known.
        names: the labels of the side, where it says which there are.
        microseconds: processor time a text, where that can be measured.
    """

    labels: list[str]
    probabilities: Float32 | None = None
    names: tuple[str, ...] = ()
    microseconds: float | None = None


class Side(Protocol):
    """One of the two that are compared."""

    @property
    def name(self) -> str:
        """What it is called."""

    def answers(self, texts: Sequence[str]) -> Answers:
        """Answer all texts."""


class ModelSide:
    """A model file."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.bytes = path.stat().st_size if path.is_file() else 0
        self.classifier = Classifier.load(path)
        if self.classifier.info.several:
            raise ConfigError(f"{path} may give a text several labels; compare takes models with one label per text.")

    def answers(self, texts: Sequence[str]) -> Answers:
        """Answer all texts, and time it."""
        names = self.classifier.labels
        seconds, found = 0.0, [np.zeros((0, len(names)), np.float32)]
        for first in range(0, len(texts), ROWS):
            began = perf_counter()
            predictions = self.classifier.predict(texts[first : first + ROWS])
            seconds += perf_counter() - began
            found.append(np.array([prediction.probabilities for prediction in predictions]))
        probabilities = np.concatenate(found)
        labels = [names[i] for i in probabilities.argmax(1).tolist()]
        return Answers(labels, probabilities, names, 1e6 * seconds / max(1, len(texts)))


class FileSide:
    """A file of answers, one a row, in the order of the data."""

    def __init__(self, path: Path) -> None:
        self.name, self.path = str(path), path

    def answers(self, texts: Sequence[str]) -> Answers:
        """Read the answers.

        Raises:
            InputError: there is no column of answers, a row has none, or they are not as many as the texts.
        """
        from textcls.data import open_table  # Late, as is the client below: most who import textcls need neither.

        with open_table(self.path) as table:
            columns = table.parts[0].columns
            column = next((name for name in ANSWER_COLUMNS if name in columns), None)
            if column is None:
                have = ", ".join(map(repr, columns))
                raise InputError(f"{self.path} has no column 'predicted_label' of answers; it has {have}.")
            found = []
            for row in islice(table.rows, len(texts) + 1):
                label = row.fields.get(column)
                if label is None or not str(label):
                    raise InputError(f"{row.where} has no answer in column {column!r}; each row needs one.")
                found.append(str(label))
        if len(found) != len(texts):
            more = "more" if len(found) > len(texts) else f"{len(found):,}"
            raise InputError(
                f"{self.path} has {more} answers for {len(texts):,} rows; it needs one per row, in the same order."
            )
        return Answers(found)


class ServiceSide:
    """A service: the address of `textcls serve`, or of whatever answers `/v1/classify` as it does."""

    def __init__(self, address: str) -> None:
        self.name = address
        self._url = address if "/v1/" in address else f"{address.rstrip('/')}/v1/classify"

    def answers(self, texts: Sequence[str]) -> Answers:
        """Ask for all texts, some at a time.

        Raises:
            SurroundingsError: the service cannot be reached, or refuses.
        """
        return Answers([label for piece in _pieces(texts) for label in self._ask(piece)])

    def _ask(self, texts: list[str]) -> list[str]:
        import urllib.error
        import urllib.request

        headers = {"content-type": "application/json"}
        if key := os.environ.get(KEY_VARIABLE):
            headers["authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url, json.dumps({"inputs": texts}).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                results = json.loads(answer.read(MOST_ANSWER_BYTES))["results"]
                return [_label_of(result) for result in results]
        except urllib.error.HTTPError as error:
            why = f"refuses with status {error.code}"
            if error.code == 401:
                why += f"; set {KEY_VARIABLE} to its key"
            raise SurroundingsError(f"{self._url} {why}.") from error
        except OSError as error:
            raise SurroundingsError(f"{self._url} cannot be reached: {getattr(error, 'reason', error)}.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise SurroundingsError(f"{self._url} does not answer as textcls serve does.") from error


def _label_of(result: dict[str, Any]) -> str:
    label = result["label"]
    if not isinstance(label, str):
        raise TypeError("a label is text")
    return label


def _pieces(texts: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), REQUEST_TEXTS):
        yield list(texts[first : first + REQUEST_TEXTS])


def side_of(given: str | Path | Classifier) -> Side:
    """Return the side that is meant: an address, a model file, or else a table of answers.

    Raises:
        ArtifactError: there is no such model file, or it is damaged.
        InputError: there is no such file.
        ConfigError: the model may give several labels a text.
    """
    if isinstance(given, Classifier):
        return ModelSide(given.path)
    if str(given).startswith(("http://", "https://")):
        return ServiceSide(str(given))
    path = Path(given)
    return ModelSide(path) if path.suffix.lower() == ".onnx" or not path.suffix else FileSide(path)
