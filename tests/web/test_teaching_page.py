"""The page teaches a label to the model that is served, and takes it back."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.clients import ADMIN
from tests.service.server import listening
from tests.service.teaching import EXAMPLES, ON, TEXT
from tests.web.conftest import told
from textcls.server.models.store import GenerationStore
from textcls.server.service import Service

Open = Callable[..., Any]


@pytest.fixture
def address_of_teachable(prototypes_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose model can be taught."""
    monkeypatch.setenv("TEXTCLS_ADMIN_KEY", ADMIN)
    shutil.copy(prototypes_path, tmp_path / "tickets.onnx")
    (tmp_path / "run").mkdir()
    store = GenerationStore(tmp_path / "run", [str(tmp_path / "tickets.onnx")], ON)
    store.publish()
    with listening(Service.of(store, ON)) as found:
        yield found


def test_a_label_is_taught_answered_and_taken_back(visit: Open, address_of_teachable: str) -> None:
    opened = visit(address_of_teachable)
    shown = opened.ask(TEXT)
    before = shown.inner_text("#verdict")
    labels = shown.inner_text("#about")
    shown.fill("#teach-label", "<b>animals</b>")
    shown.fill("#teach-examples", "\n\n".join(EXAMPLES))
    shown.fill("#teach-key", "a-key-that-is-none-at-all")
    shown.get_by_role("button", name="Teach", exact=True).click()
    told(shown, "teach-said", "This key is not valid")
    assert all("401" in said for said in opened.wrong)
    opened.wrong.clear()
    shown.fill("#teach-key", ADMIN)
    shown.get_by_role("button", name="Teach", exact=True).click()
    told(shown, "teach-said", "<b>animals</b>: new, 3 examples. In 1 the model knows no word. Left out one")
    assert "calibrated on the training rows only" in shown.inner_text("#teach-said")
    assert shown.inner_text("#verdict").startswith("<b>animals</b>")
    assert shown.inner_text("#about") != labels
    assert "<b>animals</b> · 3 examples" in shown.inner_text("#taught")
    assert shown.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    shown.get_by_role("button", name="Take back <b>animals</b>").click()
    told(shown, "teach-said", "<b>animals</b>: no longer there.")
    assert (shown.inner_text("#verdict"), shown.inner_text("#about")) == (before, labels)
    assert "animals" not in shown.inner_text("#taught")


def test_the_form_fits_a_phone(visit: Open, address_of_teachable: str) -> None:
    shown = visit(address_of_teachable, viewport={"width": 320, "height": 640}).ready()
    shown.fill("#teach-label", "x" * 200)
    shown.wait_for_selector("#teach:not([hidden])")
    assert shown.evaluate("document.documentElement.scrollWidth <= 320")


def test_without_a_model_that_can_be_taught_there_is_no_form(visit: Open, address: str) -> None:
    shown = visit(address).ready()
    assert shown.is_hidden("#teach")
