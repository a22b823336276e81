"""One prediction path under command line, Python and raw ONNX Runtime."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

from tests.cli.conftest import TEXTS
from tests.command_line import read_rows, succeed
from tests.explanations import explained
from textcls import Classifier


def raw_outputs(path: Path, texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What ONNX Runtime answers, asked text by text without this package."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = ["probabilities", "logits", "attention", "contributions", "tokens"]
    outputs = [session.run(names, {"text": np.array([text], object)}) for text in texts]
    return {name: np.array([run[i][0] for run in outputs], object) for i, name in enumerate(names)}


def test_command_line_python_and_raw_onnx_runtime_give_the_same_numbers(
    model_path: Path, classifier: Classifier, table: Path, tmp_path: Path
) -> None:
    succeed("predict", model_path, table, "--output", tmp_path / "out.csv")
    rows = read_rows(tmp_path / "out.csv")
    answers = classifier.predict(TEXTS, explain=True)
    raw = raw_outputs(model_path, TEXTS)
    for i, (text, row, answer) in enumerate(zip(TEXTS, rows, answers, strict=True)):
        printed = json.loads(succeed("explain", model_path, "--json", "--", text))
        probabilities = np.array(raw["probabilities"][i], np.float64)
        label = classifier.labels[int(probabilities.argmax())]
        assert label == answer.label == row["predicted_label"] == printed["label"]
        np.testing.assert_allclose(answer.probabilities, probabilities, atol=1e-6)
        assert float(row["score"]) == pytest.approx(probabilities.max(), abs=2e-6)
        assert printed["score"] == pytest.approx(probabilities.max(), abs=1e-6)

        tokens = explained(answer).tokens
        assert [token.text.lower() for token in tokens] == [token for token in raw["tokens"][i] if token]
        places = [(token["text"], token["start"], token["end"]) for token in printed["tokens"]]
        assert places == [(token.text, token.start, token.end) for token in tokens]
        for j, token in enumerate(tokens):
            added = np.array(raw["contributions"][i][j], np.float64)
            np.testing.assert_allclose(list(token.contributions.values()), added, atol=1e-5)
            np.testing.assert_allclose(list(printed["tokens"][j]["contributions"].values()), added, atol=1e-5)
            assert token.attention == pytest.approx(float(raw["attention"][i][j]), abs=1e-6)
