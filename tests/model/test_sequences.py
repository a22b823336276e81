"""What only looks like a sequence of texts is refused with what to pass in its place."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import textcls
from textcls import InputError
from textcls.evaluation.drift.drift import measure_drift

ROWS = [(f"{word} please {i}", label) for i in range(12) for word, label in (("refund", "a"), ("parcel", "b"))]
TEXTS, LABELS = (list(values) for values in zip(*ROWS, strict=True))
SMALL: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "device": "cpu"}


class Frame:
    """As pandas, Polars and PyArrow have it: whoever iterates over it gets the names of its columns."""

    columns = ("text", "label")

    def __iter__(self) -> Any:
        return iter(self.columns)


OR_ROWS = ", or its rows, as in table.to_dict('records')"
NO_SEQUENCES = [
    (
        Frame(),
        "A Frame is a table, not a sequence of texts: pass one of its columns, as in table['text']" + OR_ROWS + ".",
    ),
    ({"my card": 1}, "A dict is not a sequence of texts: pass its values as a list, as in list(given.values())."),
    ({"my card"}, "A set has no order: pass the texts as a list."),
    ({"my card": 1}.keys(), "A dict_keys has no order: pass the texts as a list."),
    (b"my card", "The texts are bytes: decode them to strings, as in given.decode('utf-8')."),
]


NO_ROW = "The row has no 'text': the model reads 'text' of a row, and this one has 'my card'."


@pytest.mark.parametrize(("given", "said"), [({"my card": 1}, NO_ROW), *NO_SEQUENCES[:1], *NO_SEQUENCES[2:]])
@pytest.mark.parametrize("method", ["predict", "explain", "parts"])
def test_what_is_no_sequence_of_texts_is_refused_with_what_to_pass(
    classifier: textcls.Classifier, method: str, given: Any, said: str
) -> None:
    with pytest.raises(InputError, match=rf"\A{re.escape(said)}\Z"):
        getattr(classifier, method)(given)


@pytest.mark.parametrize(("given", "said"), NO_SEQUENCES)
def test_training_takes_sequences_alone(tmp_path: Path, given: Any, said: str) -> None:
    for texts, labels, valid, what in (
        (given, LABELS, None, "texts"),
        (TEXTS, given, None, "labels"),
        (TEXTS, LABELS, (given, LABELS), "texts"),
    ):
        with pytest.raises(
            InputError,
            match=rf"\A{re.escape(said if what == 'texts' else said.replace('texts', what).replace(OR_ROWS, ''))}\Z",
        ):
            textcls.train(texts, labels, tmp_path / "m.onnx", valid=valid, **SMALL)


def test_columns_of_real_tables_are_answered_and_the_tables_refused(classifier: textcls.Classifier) -> None:
    pyarrow, numpy = pytest.importorskip("pyarrow"), pytest.importorskip("numpy")
    table = pyarrow.table({"text": ["my card was charged twice", "where is my parcel"]})
    with pytest.raises(InputError, match="A Table is a table, not a sequence of texts"):
        classifier.predict(table)
    assert len(classifier.predict(table["text"].to_pylist())) == 2
    assert len(classifier.predict(numpy.array(["a", "b"]))) == 2
    assert len(classifier.predict(text for text in ("a", "b"))) == 2
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["my card was charged twice"]})
    with pytest.raises(InputError, match="A DataFrame is a table"):
        classifier.predict(frame)
    assert len(classifier.predict(frame["text"])) == 1


@pytest.mark.parametrize("ask", [textcls.evaluate, textcls.report, textcls.explain_globally, measure_drift])
def test_the_path_of_a_model_is_no_classifier_and_that_is_said(ask: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"A classifier is needed, not str; load it, as in textcls\.Classifier\.load"):
        ask("tickets.onnx", [("a", "billing")])
