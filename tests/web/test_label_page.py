"""The page of `textcls label` in a real browser, beside the real program, by the keyboard alone."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import SCRIPT, heed_ctrl_c, write_rows

Open = Callable[..., Any]
# How often each word says what the label is.
TEXTS = [f"{word} number {i} of {10 * i}" for i in range(20) for word in ("invoice", "parcel")]


@pytest.fixture
def label(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start `textcls label` on `TEXTS`; return the address of its page."""
    write_rows(tmp_path / "texts.csv", [["text"], *([text] for text in TEXTS)])
    running: list[subprocess.Popen[str]] = []

    def start(*options: str) -> str:
        command: list[str | Path] = [SCRIPT, "label", "texts.csv", "-o", "labels.jsonl", "--port", "0", *options]
        running.append(
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
        )
        assert running[-1].stdout is not None
        found = re.search(r"http\S+", running[-1].stdout.readline())
        assert found is not None
        return found[0]

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "labels.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled(page: Any, number: int) -> None:
    """Wait until so many texts are labelled."""
    page.locator("#counts", has_text=re.compile(rf"^{number} texts? labelled")).wait_for()


def go(visit: Open, address: str, **options: Any) -> Any:
    """The page, once it shows a text."""
    return begun(visit, address, **options).page


def begun(visit: Open, address: str, *, still: bool = False, **options: Any) -> Any:
    """A visit whose page shows a text. What it asks for stands below the address without the token.

    A page that is `still` looks for news only when `news` says so.
    """
    opened = visit(address.partition("#")[0], **options)
    opened.page.goto("about:blank")
    if still:
        opened.page.clock.install()
    opened.wrong.clear()
    opened.page.goto(address)
    opened.page.wait_for_selector("#work:not([hidden])")
    return opened


def news(page: Any) -> None:
    """Let a page that is still look for news, twice, so that it has shown what it found the first time."""
    for _ in range(2):
        with page.expect_response("**/api/state") as found:
            page.clock.run_for(2_000)
        found.value.finished()


def told(page: Any, what: str) -> None:
    """Let a page that is still look for news until it says this of the learning."""
    while not re.fullmatch(what, page.inner_text("#learning")):
        page.wait_for_timeout(100)
        news(page)
    news(page)


def eight_labelled(page: Any) -> None:
    """Answer so many texts that a model can be trained."""
    for number in range(1, 9):
        page.keyboard.press("1" if "invoice" in page.inner_text("#text") else "2")
        labelled(page, number)


def marked(page: Any) -> str:
    return str(page.locator(".label.at").get_attribute("data-label"))


def mark_the_wrong_label(page: Any) -> str:
    """Mark, by keys, the label that no model would propose; return it."""
    wrong = "shipping" if "invoice" in page.inner_text("#text") else "billing"
    page.keyboard.press("ArrowDown")
    if marked(page) != wrong:
        page.keyboard.press("ArrowDown")
    assert marked(page) == wrong
    return wrong


def test_keys_label_undo_skip_and_name_new_labels_and_a_model_proposes_in_the_end(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping"))
    page.keyboard.press("1")
    labelled(page, 1)
    assert [line["label"] for line in lines(tmp_path)] == ["billing"]
    page.keyboard.press("Control+z")
    labelled(page, 0)
    first = page.inner_text("#text")
    page.keyboard.press("ArrowRight")
    page.locator("#counts", has_text="1 skipped").wait_for()
    assert page.inner_text("#text") != first
    page.keyboard.type("other")
    page.keyboard.press("Enter")
    labelled(page, 1)
    assert lines(tmp_path)[0]["label"] == "other"
    for number in range(2, 22):
        page.keyboard.press("1" if "invoice" in page.inner_text("#text") else "2")
        labelled(page, number)
    page.locator("#learning", has_text="It has learned from").wait_for()
    page.keyboard.press("1" if "invoice" in page.inner_text("#text") else "2")
    labelled(page, 22)
    page.wait_for_selector("#text .token")
    # The model's own answer is marked, and Enter takes it.
    marked = page.locator(".label.at").get_attribute("data-label")
    assert marked == ("billing" if "invoice" in page.inner_text("#text") else "shipping")
    assert page.locator("#text .p9, #text .p8").first.inner_text() in ("invoice", "parcel")
    page.keyboard.press("Enter")
    labelled(page, 23)
    assert lines(tmp_path)[-1]["label"] == marked


def test_two_browsers_label_different_texts_and_a_phone_has_buttons(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    address = label("--labels", "billing,shipping")
    one = go(visit, address)
    other = go(visit, address, viewport={"width": 375, "height": 667}, has_touch=True, is_mobile=True)
    assert one.inner_text("#text") != other.inner_text("#text")
    assert other.evaluate("document.documentElement.scrollWidth") <= 375
    shown = other.inner_text("#text")
    other.locator(".label", has_text="shipping").tap()
    labelled(other, 1)
    assert [(line["text"], line["label"]) for line in lines(tmp_path)] == [(shown, "shipping")]
    other.locator("#undo").tap()
    labelled(other, 0)
    assert other.inner_text("#text") == shown


def test_several_labels_are_put_there_and_saved_together(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping", "--several"))
    page.keyboard.press("1")
    page.keyboard.press("2")
    page.keyboard.type("urgent")
    page.keyboard.press("Enter")
    page.locator("#accept", has_text="Save billing, shipping, urgent").wait_for()
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    labelled(page, 1)
    page.keyboard.press("Enter")
    labelled(page, 2)
    assert [line["label"] for line in lines(tmp_path)] == [["shipping", "urgent"], []]


def test_an_answer_that_was_not_saved_is_told_and_the_text_stays(visit: Open, label: Callable[..., str]) -> None:
    visited = begun(visit, label("--labels", "billing,shipping"))
    page = visited.page
    shown = page.inner_text("#text")
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("1")
    page.locator("#problem", has_text="does not answer any more").wait_for()
    assert page.inner_text("#text") == shown
    page.unroute("**/api/answer")
    visited.wrong.clear()  # The browser has told of the failure, too.
    page.keyboard.press("1")
    labelled(page, 1)
    assert not page.locator("#problem").is_visible()


def test_hostile_texts_and_labels_are_shown_as_they_are(visit: Open, label: Callable[..., str], tmp_path: Path) -> None:
    address = label("--labels", "<img src=x onerror=alert(1)>,b")
    page = go(visit, address)
    assert page.locator(".label .called").first.inner_text() == "<img src=x onerror=alert(1)>"
    assert page.locator("img").count() == 0


def test_doubtful_labels_are_accepted_or_corrected_by_the_same_page(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    rows = [[f"{word} number {i} of {10 * i}", word] for i in range(20) for word in ("invoice", "parcel")]
    rows[4][1] = "parcel"
    write_rows(tmp_path / "texts.csv", [["text", "label"], *rows])
    page = go(visit, label("--suspects", "--quiet"))
    assert page.inner_text("#text") == rows[4][0]
    assert "Labelled parcel" in page.inner_text("#chosen")
    assert page.locator(".label.at").get_attribute("data-label") == "invoice"
    page.keyboard.press("Enter")
    page.locator("#done").wait_for()
    assert [(line["text"], line["label"]) for line in lines(tmp_path)] == [
        (text, "invoice" if number == 4 else own) for number, (text, own) in enumerate(rows)
    ]


def test_doubtful_sets_of_labels_come_as_they_are_suggested_and_say_what_is_new(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    rows = [
        [f"{word} number {i} of {10 * i}{', thank you' if i % 2 else ''}", f"{word};polite" if i % 2 else word]
        for i in range(40)
        for word in ("invoice", "parcel")
    ]
    rows[6][1] = "polite"
    write_rows(tmp_path / "texts.csv", [["text", "label"], *rows])
    page = go(visit, label("--suspects", "--label-separator", ";", "--quiet"))
    assert page.inner_text("#text") == rows[6][0]
    said = page.inner_text("#chosen")
    assert said.startswith("Labelled polite. Models that have not seen it would add invoice, at ")
    assert page.locator(".label.on").evaluate_all("all => all.map(one => one.dataset.label)") == ["invoice", "polite"]
    page.keyboard.press("Enter")
    page.locator("#done").wait_for()
    found = {line["text"]: line["label"] for line in lines(tmp_path)}
    assert sorted(found[rows[6][0]]) == ["invoice", "polite"]
    assert all(sorted(found[text]) == sorted(own.split(";")) for number, (text, own) in enumerate(rows) if number != 6)


def test_a_label_that_was_chosen_before_the_first_model_came_is_the_one_saved(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping"), still=True)
    eight_labelled(page)
    wrong = mark_the_wrong_label(page)
    told(page, "It has learned from 8 labels.")
    assert marked(page) == wrong
    page.keyboard.press("Enter")
    labelled(page, 9)
    assert lines(tmp_path)[-1]["label"] == wrong


def test_labels_that_were_put_there_before_the_first_hint_came_are_the_ones_saved(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping", "--several"), still=True)
    page.keyboard.press("2")
    told(page, "")
    page.keyboard.press("Enter")
    labelled(page, 1)
    assert lines(tmp_path)[-1]["label"] == ["shipping"]


def test_keys_that_are_pressed_while_the_first_model_is_asked_count(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping"), still=True)
    eight_labelled(page)
    asked: list[Any] = []
    page.route("**/api/next", lambda route: asked.append(route))
    told(page, "It has learned from 8 labels.")
    assert asked
    wrong = mark_the_wrong_label(page)
    with page.expect_response("**/api/next"):
        for each in asked:
            each.continue_()
    news(page)
    assert marked(page) == wrong
    page.keyboard.press("Enter")
    labelled(page, 9)
    assert lines(tmp_path)[-1]["label"] == wrong


def test_news_that_change_nothing_keep_the_focus_the_selection_and_a_tap_that_has_begun(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping"), still=True)
    told(page, "")
    news(page)  # Whatever is known by the names of the labels is shown.
    second = page.locator(".label").nth(1)
    second.focus()
    page.evaluate("getSelection().selectAllChildren(document.getElementById('text'))")
    news(page)
    assert page.evaluate("document.activeElement.dataset.label") == "shipping"
    assert page.evaluate("getSelection().toString()") == page.inner_text("#text")
    second.hover()
    page.mouse.down()
    news(page)
    page.mouse.up()
    labelled(page, 1)
    assert lines(tmp_path)[-1]["label"] == "shipping"


def test_a_label_that_somebody_else_named_appears_beside_the_others(visit: Open, label: Callable[..., str]) -> None:
    address = label("--labels", "billing,shipping")
    page = go(visit, address, still=True)
    other = go(visit, address)
    other.keyboard.type("urgent")
    other.keyboard.press("Enter")
    labelled(other, 1)
    news(page)
    page.locator(".label[data-label=urgent]").wait_for()


def test_a_new_label_stays_in_the_list_while_it_is_put_there(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    page = go(visit, label("--labels", "billing,shipping", "--several"), still=True)
    page.keyboard.type("urgent")
    page.keyboard.press("Enter")
    news(page)
    page.keyboard.press("1")
    page.locator(".label.on", has_text="billing").wait_for()
    assert page.locator(".label.on").all_inner_texts() == ["1\nbilling", "3\nurgent"]
    page.keyboard.press("3")
    page.locator("#accept", has_text=re.compile("^Save billing$")).wait_for()
    page.keyboard.press("Enter")
    labelled(page, 1)
    assert lines(tmp_path)[-1]["label"] == ["billing"]


@pytest.mark.parametrize("where", ["#text", "#accept", "#find"])
def test_enter_that_is_held_saves_one_answer(
    visit: Open, label: Callable[..., str], tmp_path: Path, where: str
) -> None:
    page = go(visit, label("--labels", "billing,shipping", "--several"))
    page.focus(where)
    page.keyboard.down("Enter")
    labelled(page, 1)
    page.focus(where)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.locator("#skip").click()
    page.locator("#counts", has_text="1 skipped").wait_for()
    assert len(lines(tmp_path)) == 1
    page.focus(where)
    page.keyboard.press("Enter")
    labelled(page, 2)


def test_an_arrow_that_is_held_skips_one_text(visit: Open, label: Callable[..., str]) -> None:
    page = go(visit, label("--labels", "billing,shipping"))
    page.keyboard.down("ArrowRight")
    page.locator("#counts", has_text="1 skipped").wait_for()
    page.keyboard.down("ArrowRight")
    page.keyboard.up("ArrowRight")
    page.keyboard.press("1")
    labelled(page, 1)
    assert "1 skipped" in page.inner_text("#counts")


def test_answers_of_a_language_model_are_proposed_the_doubtful_first_and_compared_with_yours(
    visit: Open, label: Callable[..., str], tmp_path: Path
) -> None:
    rows = [(text, 0.9 if "invoice" in text else 0.2) for text in TEXTS]
    rows[30] = (TEXTS[30], 0.55)
    write_rows(
        tmp_path / "texts.csv", [["text", "p_bill", "p_ship"], *([t, str(b), str(round(1 - b, 2))] for t, b in rows)]
    )
    page = go(visit, label("--label-columns", "p_*"))
    assert page.inner_text("#text") == TEXTS[30]
    assert "What is marked came along." in page.inner_text("#chosen")
    assert "55%" in page.inner_text("#labels button.at")
    for number in range(1, 41):
        page.keyboard.press("Enter")
        labelled(page, number)
    assert {line["label"] for line in lines(tmp_path)} == {"bill", "ship"}
    page.locator("#agreed", has_text="are yours on 40 of 40 random texts, 100%").wait_for()
