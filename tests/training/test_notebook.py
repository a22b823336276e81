"""What a notebook shows of a training, asked of a real Jupyter kernel."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel", reason="a notebook needs Jupyter: pip install ipykernel")

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[2]
ROWS = """
import textcls
texts = [f"{word} please, number {i}" for i in range(40) for word in ("refund", "parcel", "invoice")]
labels = ["refund", "parcel", "invoice"] * 40
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    """A kernel in an empty folder."""
    manager = KernelManager()
    manager.kernel_spec.argv[0] = sys.executable  # type: ignore[union-attr]
    path = os.pathsep.join(str(ROOT / folder) for folder in (".", "training", "kernels"))
    manager.start_kernel(cwd=str(tmp_path_factory.mktemp("notebook")), env={**os.environ, "PYTHONPATH": path})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(kernel: BlockingKernelClient, code: str) -> list[tuple[str, dict[str, Any]]]:
    """The messages that a cell sends to its browser."""
    found: list[tuple[str, dict[str, Any]]] = []
    reply = kernel.execute_interactive(
        code, timeout=120, output_hook=lambda message: found.append((message["msg_type"], message["content"]))
    )
    assert reply["content"]["status"] == "ok", reply["content"]
    return found


@pytest.mark.parametrize(
    ("call", "phase"),
    [
        ("textcls.train(texts, labels, 'm.onnx', epochs=3, dim=4)", "choosing 1/5"),
        ("textcls.audit_labels(texts, labels, epochs=1, dim=4, vectors='none')", "round 2 of 2"),
    ],
)
def test_a_call_that_takes_long_shows_one_bar_which_is_gone_in_the_end(
    kernel: BlockingKernelClient, call: str, phase: str
) -> None:
    sent = run(kernel, f"{ROWS}done = {call}")
    assert {kind for kind, _ in sent} <= {"status", "execute_input", "display_data", "update_display_data"}
    (shown,) = (content for kind, content in sent if kind == "display_data")
    pictures = [content for kind, content in sent if kind == "update_display_data"]
    assert {content["transient"]["display_id"] for content in pictures} == {shown["transient"]["display_id"]}
    assert any(phase in content["data"]["text/plain"] for content in pictures)
    assert any("<progress value=" in content["data"]["text/html"] for content in pictures)
    assert pictures[-1]["data"] == {"text/html": "", "text/plain": ""}


def test_a_training_that_fails_leaves_no_bar(kernel: BlockingKernelClient) -> None:
    code = f"""{ROWS}
try:
    textcls.train(texts, ["one"] * 120, "m.onnx")
except textcls.InputError as error:
    print(error)
"""
    sent = run(kernel, code)
    assert any(kind == "stream" and "only the label 'one'" in content["text"] for kind, content in sent)
    pictures = [content for kind, content in sent if kind == "update_display_data"]
    assert pictures[-1]["data"]["text/html"] == ""


def test_answers_and_explanations_are_shown_at_the_end_of_a_cell(kernel: BlockingKernelClient) -> None:
    code = f"{ROWS}\nclassifier = textcls.train(texts, labels, 'm.onnx', epochs=3, dim=4)\n"
    answer = "classifier.predict('my parcel', explain=True)"
    for shown in (answer, f"{answer}.explanation"):
        (result,) = (content for kind, content in run(kernel, code + shown) if kind == "execute_result")
        assert "my</" in result["data"]["text/html"]
