"""A model of prototypes that has been taught, by the WebAssembly of browsers: the answers of Python."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import written
from tests.web.test_in_browser import assert_same
from textcls import Classifier

Run = Callable[..., Any]
ASK = """
import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-web";
import { load } from "./site/page/model.mjs";
ort.env.wasm.numThreads = 1;
const model = await load(ort, new Uint8Array(readFileSync("./site/model.onnx")));
found = [];
for (const text of given) found.push(...(await model.classify([text], { explain: true })));
"""


def test_the_browser_answers_as_python_and_names_the_same_support_rows(
    in_node: Run,
    node_modules: Path,
    prototypes_path: Path,
    prototypes: Classifier,
    golden_texts: list[str],
    tmp_path: Path,
) -> None:
    folder = written(prototypes_path, tmp_path / "site", node_modules)
    texts = ["where is the money that you owe me?", *golden_texts[:20]]
    found = in_node(ASK, texts, folder.parent)
    expected = [prototypes.predict(text, explain=True).as_json() for text in texts]
    assert_same(found, expected)
    for one, other in zip(found, expected, strict=True):
        for support, like in zip(one["support"], other["support"], strict=True):
            assert support == {**like, "weight": pytest.approx(like["weight"], abs=1e-5)}
