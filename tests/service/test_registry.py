"""Several models: how they are named, and which of them answers."""

import json
import shutil
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from tests.service.clients import message, post
from tests.service.server import service_of, serving
from textcls import ArtifactError, Classifier, ConfigError
from textcls.server.models import registry


def test_models_are_chosen_by_name_and_the_header_says_which_answered(model_path: Path, tmp_path: Path) -> None:
    sources = registry.resolve([f"a={model_path}", f"b@2026-11={model_path}"])
    served = [registry.serve(Classifier.load(s.path), s.name, s.version) for s in sources]
    with serving(service_of(served)) as client:
        headers = [post(client).headers["x-model"]]
        headers += [post(client, json.dumps({"inputs": "a", "model": m}).encode()).headers["x-model"] for m in "ab"]
        digest = served[0].sha256
        assert headers == [
            f'a; version="{digest[:12]}"; sha256="{digest}"',
            f'a; version="{digest[:12]}"; sha256="{digest}"',
            f'b; version="2026-11"; sha256="{digest}"',
        ]
        said = message(post(client, b'{"inputs": "a", "model": "c"}'), 404)
        assert said == "There is no model of this name; there are a, b."
        cards = client.get("/v1/models").json()["models"]
        assert [(card["name"], card["default"]) for card in cards] == [("a", True), ("b", False)]


def test_names_of_any_script_are_served_as_they_are(model_path: Path, tmp_path: Path) -> None:
    names = ["A%2FB", "S\u00fcd 1", "\u5317\u4eac"]
    for name in names:
        shutil.copy(model_path, tmp_path / f"{name}.onnx")
    sources = registry.resolve([str(tmp_path)])
    served = [registry.serve(Classifier.load(one.path), one.name) for one in sources]
    with serving(service_of(served)) as client:
        assert [card["name"] for card in client.get("/v1/models").json()["models"]] == names
        for name in names:
            answers = [post(client, json.dumps({"inputs": "a", "model": name}).encode())]
            answers.append(client.post(f"/v1/models/{quote(name)}:predict", json={"instances": ["a"]}))
            answers.append(client.get(f"/v2/models/{quote(name)}"))
            assert [answer.status_code for answer in answers] == [200] * 3
            assert unquote(answers[0].headers["x-model"].partition(";")[0]) == name
            assert answers[2].json()["name"] == name
        assert f'model="{names[1]}"' in client.get("/metrics").text


def test_a_folder_is_all_its_models(model_path: Path, tmp_path: Path) -> None:
    for name in ("b@v2.onnx", "a.onnx", "notes.txt"):
        shutil.copy(model_path, tmp_path / name)
    assert [(s.name, s.version) for s in registry.resolve([str(tmp_path)])] == [("a", None), ("b", "v2")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a=x.onnx", "a=y.onnx"], "Two models are called a"),
        (["a:b.onnx"], "rename the file, or give it a name, as in tickets=model.onnx"),
        (["a@b c=x.onnx"], "is not a version"),
        (["tests"], "contains no model"),
    ],
)
def test_models_that_cannot_be_named_are_refused(arguments: list[str], said: str) -> None:
    with pytest.raises((ArtifactError, ConfigError), match=said):
        registry.resolve(arguments)
