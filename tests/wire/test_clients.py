"""Clients that others wrote, each in an environment of its own (make clients), against a server that wants a key."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from textcls import Classifier

ROOT = Path(__file__).parent.parent.parent
TEXT = "my card was charged twice"


def ask_by(client: str, package: str, address: str) -> dict[str, Any]:
    """Run one of the scripts in `clients`; return what it found."""
    folder = Path(os.environ.get("TEXTCLS_CLIENTS", ROOT / ".venv-clients"))
    python = folder / client / "bin" / "python"
    if not python.exists():
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make clients")
        python = Path(sys.executable)
    script = Path(__file__).parent / "clients" / f"{client}.py"
    # Nothing is asked beyond this machine.
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "0", "PYTHONPATH": ""}
    done = subprocess.run(
        [str(python), str(script), address], capture_output=True, text=True, check=False, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_client_of_hugging_face_reads_labels_and_scores(locked_address: str, classifier: Classifier) -> None:
    found = ask_by("hub", "huggingface_hub", locked_address)
    expected = [{"label": label, "score": pytest.approx(score)} for label, score in classifier.predict(TEXT).top()]
    assert found["all"] == expected
    assert found["two"] == expected[:2]
    logits = classifier.explain("my card").logits
    assert {each["label"]: each["score"] for each in found["none"]} == pytest.approx(logits)
    assert "404" in found["refused"][0]["said"]


def test_the_client_of_triton_asks_and_reads_by_both_forms(locked_address: str, classifier: Classifier) -> None:
    found = ask_by("triton", "tritonclient", locked_address)
    assert [found[name] for name in ("live", "ready", "model_ready", "absent_ready")] == [True, True, True, False]
    assert found["server"]["name"] == "textcls"
    assert found["model"]["versions"] == ["3"]
    answers = classifier.predict([TEXT, "Où est mon colis ? 📦"], explain=True)
    for form in ("binary", "json"):
        said = found[form]
        assert said["id"] == "7"
        assert said["label"] == [answer.label for answer in answers]
        assert said["score"] == pytest.approx([answer.score for answer in answers])
        assert said["shape"] == [2, len(classifier.labels)]
        assert said["labels"] == list(classifier.labels)
        assert [json.loads(each)["tokens"] for each in said["explanation"]] == [
            answer.explanation.as_json([label for label, _ in answer.top()])["tokens"]
            for answer in answers
            if answer.explanation is not None
        ]
    assert found["column"] == [answer.label for answer in answers]
    assert found["refused"][0] == "404"
    assert "There is no model of this name" in found["refused"][1]


def test_the_sdk_of_kserve_predicts_explains_and_infers(locked_address: str, classifier: Classifier) -> None:
    found = ask_by("kserve_sdk", "kserve", locked_address)
    assert all(found[name] is True for name in ("v1_live", "v1_ready", "v2_live", "v2_ready", "v2_model_ready"))
    answer = classifier.predict(TEXT, explain=True)
    assert answer.explanation is not None
    (prediction,), (explanation,) = found["predict"]["predictions"], found["explain"]["explanations"]
    assert (prediction["label"], prediction["score"]) == (answer.label, pytest.approx(answer.score))
    assert [token["text"] for token in explanation["tokens"]] == TEXT.split()
    assert found["infer"]["label"] == [answer.label]
    assert found["infer"]["score"] == pytest.approx([answer.score])
    assert 'The body must hold a list of texts: {"instances": ["a text"]}.' in found["refused"]
