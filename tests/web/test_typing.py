"""The page while somebody types: it begins with the model's example, answers, and asks no more than it must."""

import time
from collections.abc import Callable
from typing import Any

from textcls import Classifier

Open = Callable[..., Any]
TEXT = "My card was charged twice"


def test_the_answer_follows_what_is_typed(visit: Open, address: str, classifier: Classifier) -> None:
    shown = visit(address).ready()
    assert shown.is_hidden("#answer")
    shown.focus("#text")
    shown.keyboard.type(TEXT)
    answer = classifier.predict(TEXT)
    shown.locator("#verdict", has_text=f"{answer.label} {answer.score:.1%}").wait_for()
    assert shown.locator("#tinted .token").count() == 5
    # Whoever types goes on typing, and is not spoken to before a pause.
    assert shown.evaluate("document.activeElement.id") == "text"
    shown.locator("#said", has_text=f"{answer.label}, {answer.score:.1%}.").wait_for(state="attached")
    shown.fill("#text", " ")
    shown.locator("#answer").wait_for(state="hidden")


def test_a_slow_server_is_asked_once_at_a_time_and_at_last_about_the_whole_text(visit: Open, address: str) -> None:
    opened = visit(address)
    shown = opened.ready()
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.post_data_json["inputs"][0])
        time.sleep(0.2)
        route.continue_()

    shown.route("**/v1/classify", answer)
    shown.focus("#text")
    shown.keyboard.type(TEXT)
    shown.locator("#tinted", has_text=TEXT).wait_for()
    assert asked[-1] == TEXT
    assert len(asked) < len(TEXT) / 2


def test_a_long_text_waits_for_the_button(visit: Open, address: str) -> None:
    shown = visit(address).ready()
    shown.fill("#text", "refund " * 1000)
    shown.wait_for_timeout(200)
    assert shown.is_hidden("#answer")
    shown.click("#classify")
    shown.wait_for_selector("#answer:not([hidden])")


def test_the_page_begins_with_the_example_in_a_field_for_each_column(
    visit: Open, address_of_two_columns: str, two_columns: Classifier
) -> None:
    row = {"subject": "Charged twice", "body": "My card, why?"}
    shown = visit(address_of_two_columns).ready()
    answer = two_columns.predict(row)
    shown.locator("#verdict", has_text=f"{answer.label} {answer.score:.1%}").wait_for()
    assert shown.get_by_label("subject").input_value() == row["subject"]
    assert shown.get_by_label("body").input_value() == row["body"]
    assert shown.evaluate("document.getElementById('tinted').textContent") == "\n".join(row.values())
    with shown.expect_request("**/v1/classify") as asked:
        shown.get_by_label("subject").fill("Refund")
    assert asked.value.post_data_json["inputs"] == [row | {"subject": "Refund"}]
