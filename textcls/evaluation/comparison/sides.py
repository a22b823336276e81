"""What can be compared: a model file, a file of answers such as `textcls predict` writes, or a service."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from textcls.data.storage import without_secrets
from textcls.data.targets import JSON
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.jobs.batch.chunks import ROWS
from textcls.model.artifact import LABELS_WRITTEN
from textcls.model.classifier import Classifier, Text
from textcls.model.label_sets import LabelSet, of_cell

Float32 = NDArray[np.float32]
# The labels of a row or an answer: one label, or several, sorted.
Labels = str | tuple[str, ...]

# Number of texts per request, which every service accepts.
REQUEST_TEXTS: Final = 64
REQUEST_SECONDS: Final = 60
MOST_ANSWER_BYTES: Final = 64 * 2**20
MOST_MESSAGE_BYTES: Final = 10_000
# The name that `textcls predict` gives the column of several labels.
PREDICTED_LABELS: Final = "predicted_labels"
# Columns that contain an answer, of which the first one present counts; and those that contain several labels.
# Columns named as in a data set come last: a table of answers often contains the right labels as well.
ANSWER_COLUMNS: Final = ("predicted_label", "prediction", "predicted", "answer", "label")
SET_COLUMNS: Final = (PREDICTED_LABELS, *ANSWER_COLUMNS[:-1], "labels", ANSWER_COLUMNS[-1])
KEY_VARIABLE: Final = "TEXTCLS_API_KEY"


# Signs between the labels of a cell that are tried where the expected one does not give known labels.
_USUAL_SEPARATORS: Final = (";", ",", "|", "\t")


class SideAnswers(NamedTuple):
    """The answers of a side to all rows.

    Attributes:
        labels: the labels of each row; several labels of a row are sorted.
        probabilities: one for each row and label [rows, labels of the side]; None if they are not known.
        names: the labels of the side, if it states them.
        microseconds: processor time per text, if that can be measured.
    """

    labels: Sequence[Labels]
    probabilities: Float32 | None = None
    names: tuple[str, ...] = ()
    microseconds: float | None = None

    def renamed(self, new: Mapping[str, str]) -> "SideAnswers":
        """Return the answers with renamed labels; labels that become one get the sum of their probabilities, or with
        several labels per row their maximum.
        """
        if not new:
            return self

        def one(label: str) -> str:
            return new.get(label, label)

        several = bool(self.labels) and not isinstance(self.labels[0], str)
        labels = [one(of) if isinstance(of, str) else tuple(sorted({*map(one, of)})) for of in self.labels]
        names, probabilities = tuple(dict.fromkeys(map(one, self.names))), self.probabilities
        if probabilities is not None:
            together = np.zeros((len(names), len(probabilities)), probabilities.dtype)
            number = [names.index(one(label)) for label in self.names]
            (np.maximum if several else np.add).at(together, number, probabilities.T)
            probabilities = together.T
        return self._replace(labels=labels, probabilities=probabilities, names=names)


class ModelSide:
    """A model, whose answers are label sets if it may give several labels."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.name, self.bytes = str(classifier.path), classifier.graph.bytes
        self.several = classifier.info.several

    def answers(self, texts: Sequence[Text]) -> SideAnswers:
        """Answer all texts, and measure the time."""
        names = self.classifier.labels
        seconds, found = 0.0, [np.zeros((0, len(names)), np.float32)]
        for first in range(0, len(texts), ROWS):
            began = perf_counter()
            predictions = self.classifier.predict(texts[first : first + ROWS])
            seconds += perf_counter() - began
            found.append(np.array([prediction.probabilities for prediction in predictions]))
        probabilities = np.concatenate(found)
        return SideAnswers(self._labels(probabilities), probabilities, names, 1e6 * seconds / max(1, len(texts)))

    def _labels(self, probabilities: Float32) -> list[Labels]:
        names, thresholds = self.classifier.labels, self.classifier.info.thresholds
        if thresholds is None:
            return [names[i] for i in probabilities.argmax(1).tolist()]
        assigned = probabilities >= np.array(thresholds, probabilities.dtype)
        return [tuple(sorted(names[i] for i in np.flatnonzero(row).tolist())) for row in assigned]


class FileSide:
    """A file of answers, one per row, in the order of the data.

    Args:
        path: the path of the file.
        separator: what separates the labels of a cell, `json` if each is a JSON list; None if each row has one label.
            Where cells are of labels that are known if read otherwise, that is how they are read.
    """

    def __init__(self, path: Path, separator: str | None = None) -> None:
        self.name, self.path, self._separator = str(path), path, separator
        self.several = separator is not None

    def answers(self, texts: Sequence[Text], known: Set[str] = frozenset()) -> SideAnswers:
        """Read the answers; `known` are labels of the rows and models, which tell how a cell is to be read.

        Raises:
            InputError: there is no column of answers, or it is one of several labels while rows have one; a row has no
                answer; the number of answers differs from that of the texts; or the same texts come in another order.
        """
        from textcls.data import open_table  # Late, as is the client below: most who import textcls need neither.

        with open_table(self.path) as table:
            columns = table.parts[0].columns
            wanted = ANSWER_COLUMNS if self._separator is None else SET_COLUMNS
            column = next((name for name in wanted if name in columns), None)
            if column is None:
                have = ", ".join(map(repr, columns))
                raise InputError(f"{self.path} has no column {wanted[0]!r} of answers; it has {have}.")
            if self._separator is None and column == ANSWER_COLUMNS[-1] and PREDICTED_LABELS in columns:
                raise InputError(
                    f"{self.path} has answers of several labels a row, in the column {PREDICTED_LABELS!r}; say by "
                    "--label-separator that rows may have several."
                )
            rows = list(islice(table.rows, len(texts) + 1))
        cells = [(row.fields.get(column), row.where) for row in rows]
        separator = self._separator
        if separator is not None:
            separator = _written_with(separator, [value for value, _ in cells], column == PREDICTED_LABELS, known)
        found = [_answer(value, f"{where} has", column, separator) for value, where in cells]
        if len(found) != len(texts):
            more = "more" if len(found) > len(texts) else f"{len(found):,}"
            raise InputError(
                f"{self.path} has {more} answers for {len(texts):,} rows; it needs one per row, in the same order."
            )
        for name in columns:
            if name != column and _in_another_order(texts, [row.fields.get(name) for row in rows]):
                raise InputError(
                    f"{self.path} has the rows of the data in another order, as its column {name!r} tells; it needs "
                    "one answer per row, in the same order."
                )
        return SideAnswers(found)


def _in_another_order(texts: Sequence[Text], values: Sequence[object]) -> bool:
    """Return whether a column contains most of the texts of the data, but hardly in their order."""
    wanted = [text if isinstance(text, str) else next(iter(text.values()), "") for text in texts]
    in_place = sum(one == other for one, other in zip(wanted, values, strict=True))
    known = {value for value in wanted if isinstance(value, str)}
    there = sum(isinstance(value, str) and value in known for value in values)
    return 2 * there > len(wanted) and 2 * in_place < there


def _written_with(separator: str, cells: Sequence[Any], by_predict: bool, known: Set[str]) -> str:
    """Return the separator between the labels of cells: of the usual ones that by which most cells are of known labels.

    Ties go to the separator of the rows; in a column that `textcls predict` has written to its default, if no cell
    contains the former.
    """
    from textcls.jobs.batch.answer_columns import SEPARATOR

    written = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    marks = ("[", "{") if separator == JSON else (separator,)
    has_it = any(cell.lstrip().startswith(marks) if separator == JSON else separator in cell for cell in written)
    first = SEPARATOR if by_predict and not has_it else separator
    signs = dict.fromkeys((first, separator, SEPARATOR, JSON, *_USUAL_SEPARATORS))
    return max(signs, key=lambda sign: sum(_is_known(of_cell(cell, sign), known) for cell in written))


def _is_known(labels: LabelSet | str, known: Set[str]) -> bool:
    return not isinstance(labels, str) and known >= labels.keys()


def _answer(value: Any, where: str, column: str, separator: str | None) -> Labels:
    if separator is not None:
        labels = of_cell(value, separator)
        if isinstance(labels, str):
            raise InputError(f"{where} labels in column {column!r} that {labels}.")
        return tuple(sorted(labels))
    if value is None or not str(value):
        raise InputError(f"{where} no answer in column {column!r}; each row needs one.")
    return str(value)


class ServiceSide:
    """A service: the address of `textcls serve`, or of any server that answers `/v1/classify` in the same way."""

    def __init__(self, address: str, *, several: bool = False) -> None:
        self.name, self.several = without_secrets(address), several
        parts = urlsplit(address)
        path = parts.path if "/v1/" in parts.path else f"{parts.path.rstrip('/')}/v1/classify"
        self._url = parts._replace(path=path).geturl()

    def answers(self, texts: Sequence[Text]) -> SideAnswers:
        """Request the answers to all texts, in batches.

        Raises:
            SurroundingsError: the service cannot be reached, or refuses.
        """
        return SideAnswers([label for piece in _pieces(texts) for label in self._ask(piece)])

    def _ask(self, texts: list[Text]) -> list[Labels]:
        from http.client import HTTPException
        from urllib.error import HTTPError

        from textcls.data.web import answer_of

        body, shown = json.dumps({"inputs": texts}, default=str).encode(), without_secrets(self._url)
        key = os.environ.get(KEY_VARIABLE)
        try:
            with answer_of(self._url, REQUEST_SECONDS, body, "application/json", key) as answer:
                results = json.loads(answer.read(MOST_ANSWER_BYTES))["results"]
                if len(results) != len(texts):
                    raise ValueError("each text has one result")
                return [_labels_of(result) if self.several else _label_of(result) for result in results]
        except HTTPError as error:
            why = f"refuses with status {error.code}"
            if error.code == 401:
                why += f"; set {KEY_VARIABLE} to its key"
            elif message := _message(error.read(MOST_MESSAGE_BYTES)):
                why += f": {message}"
            raise SurroundingsError(f"{shown} {why}.") from error
        except OSError as error:
            raise SurroundingsError(f"{shown} cannot be reached: {getattr(error, 'reason', error)}.") from error
        except (HTTPException, ValueError, KeyError, TypeError) as error:
            several = " with a model that may give several labels" if self.several else ""
            raise SurroundingsError(f"{shown} does not answer as textcls serve does{several}.") from error


def _message(body: bytes) -> str:
    """Return the message of a service's error, without the full stop; empty if it is not an answer in our format."""
    try:
        return str(json.loads(body)["error"]["message"]).removesuffix(".")
    except (ValueError, KeyError, TypeError):
        return ""


def _labels_of(result: dict[str, Any]) -> tuple[str, ...]:
    labels = result["assigned"]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise TypeError("labels are a list of text")
    return tuple(sorted(labels))


def _label_of(result: dict[str, Any]) -> str:
    label = result["label"]
    if not isinstance(label, str):
        raise TypeError("a label is text")
    return label


def _pieces(texts: Sequence[Text]) -> Iterator[list[Text]]:
    for first in range(0, len(texts), REQUEST_TEXTS):
        yield list(texts[first : first + REQUEST_TEXTS])


Side = ModelSide | FileSide | ServiceSide


def side_of(given: str | Path | Classifier, separator: str | None = None) -> Side:
    """Return the side that is given: an address, a model file, or else a table of answers.

    Args:
        given: the address, file or classifier.
        separator: the separator between the labels of a cell of a table of answers, `json` if each cell is a JSON list;
            None if each row has one label.

    Raises:
        ArtifactError: there is no such model file, or it is damaged.
        InputError: there is no such file, or it is neither.
    """
    if isinstance(given, Classifier):
        return ModelSide(given)
    if not isinstance(given, str | Path):
        raise InputError(
            f"A {type(given).__name__} cannot be compared: pass a model, a file of answers, one a row, or the address "
            "of a service."
        )
    if str(given).startswith(("http://", "https://")):
        return ServiceSide(str(given), several=separator is not None)
    path = Path(given)
    if path.suffix.lower() == ".onnx" or not path.suffix:
        return ModelSide(Classifier.load(path))
    return FileSide(path, separator)


def sides_of(
    first: str | Path | Classifier, second: str | Path | Classifier, *, several: bool, separator: str | None = None
) -> tuple[Side, Side]:
    """Return both sides, which give a row several labels if `several`, or if a model among them may.

    Args:
        first: the first side, see `side_of`.
        second: likewise.
        several: whether rows have several labels; models alone can determine that as well.
        separator: the separator between the labels of a cell of a table of answers; by default that of the training of
            the models, or else the one that `textcls predict` writes.

    Raises:
        ConfigError: a model gives one label per text, and the other side, or the rows, several.
    """
    given = (first, second)
    sides = [side_of(one) for one in given]
    models = [side for side in sides if isinstance(side, ModelSide)]
    if several or any(model.several for model in models):
        odd = next((model for model in models if not model.several), None)
        if odd is not None:
            raise ConfigError(
                f"{odd.name} gives a text one label, and it is compared where texts may have several; compare it with "
                "another of its kind, on rows with one label each."
            )
        between = separator or _usual_separator(models)
        pairs = zip(given, sides, strict=True)
        sides = [side if isinstance(side, ModelSide) else side_of(one, between) for one, side in pairs]
    return sides[0], sides[1]


def _usual_separator(models: Sequence[ModelSide]) -> str:
    """Return the separator of the rows that the models were trained on, or else the one that `predict` writes."""
    from textcls.data import TargetOptions
    from textcls.jobs.batch.answer_columns import SEPARATOR

    found = (TargetOptions.from_json(model.classifier.info.training.get(LABELS_WRITTEN, {})) for model in models)
    return next((one.label_separator for one in found if one.label_separator is not None), SEPARATOR)


def is_several(sides: tuple[Side, Side]) -> bool:
    """Return whether two sides give rows label sets."""
    return any(side.several for side in sides)
