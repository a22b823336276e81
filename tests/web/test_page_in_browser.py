"""The page in a real browser: what a person does with it, and what it must never do."""

import csv
import io
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textcls import Classifier
from textcls.display.html import explanation as html_explanation
from textcls.display.passages import LONGEST
from textcls.display.text import visible

Open = Callable[..., Any]
TEXT = "My card was charged twice for the flurbostic order, I want a refund"
HOSTILE = (
    "my card <script>alert(1)</script> & \"quoted\" 'single' </textarea></div><img src=x onerror=alert(1)>",
    "controls \x1b[31m \x07 \x9b a\u202egnirts\u202c \u2066x\u2069",
    "\u0643\u062a\u0628\u062a \u0644\u0643\u0645 \U0001f469\u200d\U0001f469\u200d\U0001f467 e\u0301 \u6ce8\u6587",
    "javascript:alert(1) {{7*7}} ${alert(1)} %00 \\u003cscript\\u003e",
    "tabs\tand\nlines\n\n\nend",
)


def told(page: Any, where: str, what: str) -> None:
    """Wait until the page says something. Not by a function: its policy refuses to compile one."""
    page.locator(f"#{where}", has_text=what).wait_for(state="attached")


def numbers(text: str) -> dict[str, str]:
    """The lines of a tooltip."""
    return dict(re.findall(r"(evidence|difference|attention)\s?([+\u2212]?[\d.]+)", text))


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\u2212")


def test_scores_are_bars_and_the_winner_is_told(visit: Open, address: str, classifier: Classifier) -> None:
    shown = visit(address).ask(TEXT)
    answer = classifier.predict(TEXT, explain=True)
    assert shown.inner_text("#verdict") == f"{answer.label} {answer.score:.1%}"
    rows = shown.query_selector_all(".score-row")
    assert [row.query_selector(".called").inner_text() for row in rows] == [label for label, _ in answer.top()]
    assert [row.query_selector(".of").inner_text() for row in rows] == [f"{score:.1%}" for _, score in answer.top()]
    widths = [row.query_selector(".track i").evaluate("bar => bar.style.width") for row in rows]
    assert [float(width[:-1]) for width in widths] == pytest.approx(
        [100 * score for _, score in answer.top()], abs=0.06
    )
    # A screen reader is told, too.
    assert shown.inner_text("#said") == f"{answer.label}, {answer.score:.1%}."


def test_sentences_may_be_shown_in_the_place_of_tokens(visit: Open, address: str, classifier: Classifier) -> None:
    text = "My card was charged twice. Where is my parcel, please? Thanks!"
    shown = visit(address).ask(text)
    shown.select_option("#unit", "sentence")
    sentences = classifier.explain(text).grouped("sentence")
    names = [token.text for token in sentences.tokens]
    assert [span.inner_text() for span in shown.query_selector_all("#tinted .token")] == names
    rows = shown.query_selector_all("#tables tbody tr")[: len(names)]
    told = {row.query_selector("th").inner_text(): row.query_selector_all("td")[1].inner_text() for row in rows}
    assert told == dict(zip(names, map(signed, sentences.evidence().tolist()), strict=True))
    assert "bias + sentences = logit" in shown.inner_text("#notes")
    shown.select_option("#unit", "token")
    assert len(shown.query_selector_all("#tinted .token")) == len(classifier.explain(text).tokens)


def test_tokens_are_tinted_as_in_the_page_of_explain_and_unknown_ones_are_marked(
    visit: Open, address: str, classifier: Classifier
) -> None:
    shown = visit(address).ask(TEXT)
    explanation = classifier.explain(TEXT)
    levels = html_explanation._levels(explanation.attribution())
    kinds = [set((span.get_attribute("class") or "").split()) for span in shown.query_selector_all("#tinted .token")]
    for kind, level, known in zip(kinds, levels, explanation.known.tolist(), strict=True):
        tint = {f"{'p' if level > 0 else 'n'}{abs(level)}"} if level else set()
        assert kind == {"token"} | tint | (set() if known else {"unknown"})
    assert any("unknown" in kind for kind in kinds)
    assert "unknown to the model" in shown.inner_text("#legend")


def test_another_label_and_why_a_and_not_b(visit: Open, address: str, classifier: Classifier) -> None:
    shown = visit(address).ask(TEXT)
    explanation = classifier.explain(TEXT)
    shown.get_by_role("radio", name="shipping").check()
    assert shown.inner_text("#why-label") == "Why shipping"
    attribution = explanation.attribution("shipping")
    assert signed(attribution.total) in shown.inner_text("#tables .total")
    shown.get_by_label("against").select_option(label="account")
    assert shown.inner_text("#why-label") == "Why shipping and not account"
    attribution = explanation.attribution("shipping", "account")
    for number in (*attribution.values.tolist(), attribution.bias, attribution.total):
        assert signed(number) in shown.inner_text("#tables")
    # The label itself cannot be contrasted with itself.
    shown.get_by_role("radio", name="account").check()
    assert shown.inner_text("#why-label") == "Why account"


def test_hovering_shows_the_numbers_of_a_token(visit: Open, address: str, classifier: Classifier) -> None:
    shown = visit(address).ask(TEXT)
    attribution, explanation = classifier.explain(TEXT).attribution(), classifier.explain(TEXT)
    shown.hover("[data-token='3']")
    tip = shown.get_by_role("tooltip")
    assert tip.is_visible()
    assert tip.inner_text().startswith("charged")
    assert numbers(tip.inner_text()) == {
        "evidence": signed(float(attribution.values[3])),
        "attention": f"{explanation.attention[3]:.3f}",
    }
    shown.mouse.move(2, 2)
    assert not tip.is_visible()


def test_everything_works_with_the_keyboard_alone(visit: Open, address: str) -> None:
    shown = visit(address).ready()
    shown.focus("#text")
    shown.keyboard.type(TEXT)
    shown.keyboard.press("Control+Enter")
    shown.wait_for_selector("#answer:not([hidden])")
    before = shown.inner_text("#why-label")
    shown.focus(".score-row input:checked")
    shown.keyboard.press("ArrowDown")
    assert shown.inner_text("#why-label") != before
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.id") == "against"
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.id") == "unit"
    shown.keyboard.press("Tab")
    # One stop for the text; arrows walk from token to token, and each is described by its numbers.
    assert shown.evaluate("document.activeElement.textContent") == "My"
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.textContent") == "card"
    assert shown.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    assert shown.inner_text("#tip").startswith("card")
    shown.keyboard.press("End")
    assert shown.evaluate("document.activeElement.textContent") == "refund"
    shown.keyboard.press("Escape")
    assert shown.is_hidden("#tip")
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.closest('#tinted')") is None


def test_every_control_has_a_name_for_a_screen_reader(visit: Open, address: str) -> None:
    shown = visit(address).ask(TEXT)
    tree = shown.locator("body").aria_snapshot()
    nameless = re.findall(r"- (?:button|textbox|combobox|radio|link|region)(?: \[[^]]*\])?(?::|$)", tree, re.MULTILINE)
    assert nameless == []
    for role, name in (("textbox", "Text to classify"), ("button", "Classify"), ("combobox", "against")):
        assert shown.get_by_role(role, name=name).count() == 1
    assert shown.get_by_role("heading", level=1).count() == 1
    assert shown.evaluate("document.documentElement.lang") == "en"


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_shown_as_text(visit: Open, address: str, text: str) -> None:
    shown = visit(address).ask(text)
    assert shown.input_value("#text") == text
    assert shown.evaluate("document.getElementById('tinted').textContent") == visible(text)
    assert shown.query_selector_all("main script, main img, main a, main iframe") == []


def test_a_long_text_is_folded_and_what_was_cut_is_told(visit: Open, address: str, classifier: Classifier) -> None:
    text = "refund order " * 40 + "and <i>this</i> was not read"
    shown = visit(address).ask(text)
    assert "longer than the model reads" in shown.inner_text("#remarks")
    assert "and <i>this</i> was not read" in shown.inner_text("#tinted .unread")
    assert len(shown.query_selector_all("#tinted .token")) == classifier.info.max_tokens
    # The model reads 64 tokens: for the fold, an answer as a larger one would give it.
    many = {
        "label": "billing",
        "score": 0.9,
        "labels": [{"label": "billing", "score": 0.9}, {"label": "sales", "score": 0.1}],
        "decision": "accept",
        "truncated": False,
        "runner_up": "sales",
        "bias": {"billing": 0.0, "sales": 0.0},
        "logits": {"billing": 500.0, "sales": 0.0},
        "completeness_error": 0.0,
        "tokens": [
            {
                "text": f"w{i:03}",
                "start": 5 * i,
                "end": 5 * i + 4,
                "attention": 0.002,
                "contributions": {"billing": 1.0, "sales": 0.0},
                "known": True,
            }
            for i in range(500)
        ],
    }
    opened = visit(address)
    opened.page.route("**/v1/classify", lambda route: route.fulfill(json={"results": [many]}))
    shown = opened.ask(" ".join(f"w{i:03}" for i in range(500)))
    assert len(shown.query_selector_all("#tinted .token")) == 5 * LONGEST
    assert "The sentences that decide: 300 of 500 tokens, 60.0% of the evidence." in shown.inner_text("#tinted")
    shown.get_by_role("button", name="Show the whole text").click()
    assert len(shown.query_selector_all("#tinted .token")) == 500
    assert shown.evaluate("document.activeElement.textContent") == "w000"
    assert "The 20 tokens shown carry 4.0% of the evidence." in shown.inner_text("#notes")
    shown.get_by_text("All 500 tokens in reading order").click()
    shown.locator("#tables details tbody tr").nth(501).wait_for()


def test_a_file_of_lines_becomes_a_table_and_a_download(
    visit: Open, address: str, classifier: Classifier, tmp_path: Path
) -> None:
    lines = [*HOSTILE[:1], "where is my parcel?", "", 'quote " and, comma', "x" * 30_000, "refund"] * 12
    file = tmp_path / "lines.txt"
    file.write_text("\ufeff" + "\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    opened = visit(address)
    shown = opened.ready()
    shown.set_input_files("#file", file)
    shown.wait_for_selector("#download:not([hidden])")
    with shown.expect_download() as download:
        shown.click("#download")
    assert download.value.suggested_filename == "lines_answers.csv"
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"), newline="")))
    assert rows[0] == ["text", "predicted_label", "score", "decision"]
    assert [row[0] for row in rows[1:]] == lines
    for line, (_, label, score, said) in zip(lines, rows[1:], strict=True):
        if len(line) > 20_000:
            # A line that the service refuses does not stop the others.
            assert "max_characters" in said
            continue
        answer = classifier.predict(line)
        assert (label, said) == (answer.label, "accept")
        assert float(score) == pytest.approx(answer.score, abs=1e-6)
    assert shown.inner_text("#many-said") == f"{len(lines)} lines classified."
    shown.get_by_role("button", name="Why line 2", exact=True).click()
    told(shown, "said", "%")
    assert shown.input_value("#text") == "where is my parcel?"
    # What the server said of the lines that are too long is in the browser's log of requests.
    assert all("413" in said for said in opened.wrong)
    opened.wrong.clear()


TABLE = [
    ("id", "Message", "queue"),
    ("1", 'a "quoted", text', "billing"),
    ("2", "two\nlines", "x;y"),
    ("3", "refund", ""),
]


@pytest.mark.parametrize(
    ("name", "delimiter", "mark"), [("a.csv", ",", ""), ("excel.csv", ";", "\ufeff"), ("a.tsv", "\t", "")]
)
def test_a_table_is_read_by_its_column_and_comes_back_as_it_was_written(
    visit: Open, address: str, classifier: Classifier, tmp_path: Path, name: str, delimiter: str, mark: str
) -> None:
    content = io.StringIO()
    csv.writer(content, delimiter=delimiter).writerows(TABLE)
    (tmp_path / name).write_text(mark + content.getvalue(), encoding="utf-8", newline="")
    shown = visit(address).ready()
    shown.set_input_files("#file", tmp_path / name)
    told(shown, "many-said", "3 rows classified.")
    with shown.expect_download() as download:
        shown.click("#download")
    assert download.value.suggested_filename == f"{name[:-4]}_answers{name[-4:]}"
    written = Path(download.value.path()).read_bytes().decode()
    assert written.startswith(mark + "id")
    rows = list(csv.reader(io.StringIO(written.removeprefix("\ufeff"), newline=""), delimiter=delimiter))
    assert rows[0] == [*TABLE[0], "predicted_label", "score", "decision"]
    assert [tuple(row[:3]) for row in rows[1:]] == TABLE[1:]
    assert [row[3] for row in rows[1:]] == [classifier.predict(row[1]).label for row in TABLE[1:]]
    # Another column is chosen, and answered at once.
    shown.get_by_label("Text column").select_option("queue")
    shown.locator("#rows td.said", has_text="x;y").wait_for()
    shown.get_by_role("button", name="Why row 1", exact=True).click()
    told(shown, "said", "billing")
    assert shown.input_value("#text") == "billing"


def test_answers_get_other_names_where_the_file_has_such_columns(visit: Open, address: str) -> None:
    shown = visit(address).ready()
    content = b"text,score,answer_decision\nrefund,3,x\n"
    shown.set_input_files("#file", {"name": "a.csv", "mimeType": "text/csv", "buffer": content})
    told(shown, "many-said", "1 row classified.")
    with shown.expect_download() as download:
        shown.click("#download")
    heads = Path(download.value.path()).read_text().splitlines()[0]
    assert (
        heads == "text,score,answer_decision,answer_answer_predicted_label,answer_answer_score,answer_answer_decision"
    )


def test_where_no_column_is_known_the_page_asks_which_and_a_bad_row_stops_nothing(
    visit: Open, address: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,refund\n2\n3,parcel\n4,and,more\n")
    shown = visit(address).ready()
    shown.set_input_files("#file", tmp_path / "a.csv")
    told(shown, "many-said", "Which column holds the text?")
    shown.get_by_label("Text column").select_option("y")
    told(shown, "many-said", "4 rows classified.")
    assert "1 field where the header has 2." in shown.inner_text("#rows")
    with shown.expect_download() as download:
        shown.click("#download")
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_text(), newline="")))
    # What stands in a row that cannot be read is not lost.
    assert [row[:2] for row in rows[1:]] == [["1", "refund"], ["2", ""], ["3", "parcel"], ["4", "and"]]


def test_what_is_refused_leaves_no_answer_of_another_text(visit: Open, address: str) -> None:
    opened = visit(address)
    shown = opened.ask("my card was charged twice")
    assert shown.is_visible("#answer")
    shown.fill("#text", "x" * 30_000)
    shown.press("#text", "Control+Enter")
    shown.locator("#problem", has_text="max_characters").wait_for()
    assert not shown.is_visible("#answer")
    opened.wrong.clear()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.xlsx", b"PK\x03\x04...", "an Excel file or a zip archive; save the sheet as CSV"),
        ("a.csv", b'text\n"open', "Line 2: a quote opens in this row and is never closed."),
        ("a.csv", b"text,text\na,b", 'Two columns are called "text".'),
        ("a.csv", b"text\n", "This file has no rows."),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_in_a_sentence(
    visit: Open, address: str, tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    shown = visit(address).ready()
    shown.set_input_files("#file", tmp_path / name)
    told(shown, "many-said", said)


def test_a_busy_server_is_asked_again_and_a_long_file_can_be_stopped(visit: Open, address: str, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("refund\n" * 40)
    opened = visit(address)
    busy = [True]

    def answer(route: Any) -> None:
        if busy and busy.pop():
            route.fulfill(status=429, headers={"retry-after": "0.01"}, json={"error": {"message": "Later."}})
        else:
            route.continue_()

    shown = opened.ready()
    shown.route("**/v1/classify", answer)
    shown.set_input_files("#file", tmp_path / "lines.txt")
    told(shown, "many-said", "40 lines classified.")
    assert busy == []
    # From now on the first answer is the last.
    busy.append(False)
    shown.unroute("**/v1/classify")
    shown.route("**/v1/classify", lambda route: route.continue_() if busy and not busy.pop() else None)
    shown.set_input_files("#file", tmp_path / "lines.txt")
    told(shown, "done", "32 of 40")
    shown.get_by_role("button", name="Stop").click()
    told(shown, "many-said", "Stopped after 32 of 40 lines.")
    assert shown.is_visible("#download")
    opened.wrong.clear()


def test_a_file_that_is_no_text_is_refused_in_a_sentence(visit: Open, address: str, tmp_path: Path) -> None:
    (tmp_path / "picture.txt").write_bytes(b"\xff\xfe\x00\x89PNG")
    shown = visit(address).ready()
    shown.set_input_files("#file", tmp_path / "picture.txt")
    told(shown, "many-said", ".")
    assert shown.inner_text("#many-said") == "This file is not UTF-8 text: save it as UTF-8."


def test_the_curl_line_that_is_copied_asks_the_same(visit: Open, address: str, classifier: Classifier) -> None:
    text = 'it\'s "quoted" $HOME `id` \\ \n\u00e9\U0001f621'
    shown = visit(address, permissions=["clipboard-read", "clipboard-write"]).ask(text)
    shown.get_by_role("button", name="Copy as curl").click()
    told(shown, "said", "Copied.")
    line = shown.evaluate("navigator.clipboard.readText()")
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, env=environment)
    (result,) = json.loads(done.stdout)["results"]
    assert result["score"] == pytest.approx(classifier.predict(text).score, abs=1e-6)
    assert "".join(token["text"] for token in result["tokens"]) == re.sub(r"\s", "", text)


def test_another_model_can_be_chosen(visit: Open, address: str) -> None:
    shown = visit(address).ask(TEXT)
    with shown.expect_request("**/v1/classify") as asked:
        shown.get_by_label("Model").select_option("other")
    assert asked.value.post_data_json["model"] == "other"
    assert shown.inner_text("#about").startswith("other")


def test_where_keys_are_set_the_page_asks_for_one(visit: Open, locked_address: str) -> None:
    opened = visit(locked_address)
    shown = opened.page
    shown.wait_for_selector("#locked:not([hidden])")
    assert shown.inner_text("#problem") == "This service needs a key."
    shown.fill("#key", "key-of-the-first-client")
    shown.get_by_role("button", name="Unlock").click()
    shown = opened.ask(TEXT)
    assert shown.is_hidden("#problem")
    assert shown.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    assert all("401" in said for said in opened.wrong)
    opened.wrong.clear()


def test_a_refusal_and_a_server_that_is_gone_are_told(visit: Open, address: str) -> None:
    opened = visit(address)
    shown = opened.ready()
    shown.fill("#text", "x" * 30_000)
    shown.click("#classify")
    shown.wait_for_selector("#problem:not([hidden])")
    assert "max_characters" in shown.inner_text("#problem")
    opened.page.route("**/v1/classify", lambda route: route.abort())
    shown.click("#classify")
    told(shown, "problem", "still running")
    opened.wrong.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_can_be_read_in_light_and_dark(visit: Open, address: str, scheme: str) -> None:
    opened = visit(address, viewport={"width": 320, "height": 640}, color_scheme=scheme, has_touch=True)
    shown = opened.ask(TEXT + " " + "x" * 100)
    assert shown.evaluate("document.documentElement.scrollWidth <= 320")
    contrast = """ids => {
      const light = (color) => {
        const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((c) => c / 255)
          .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = light(getComputedStyle(document.body).backgroundColor);
      return ids.map((id) => {
        const ink = light(getComputedStyle(document.querySelector(id)).color);
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      });
    }"""
    assert min(shown.evaluate(contrast, ["#verdict", "#about", "#legend p", "#notes p", ".score-row .of"])) > 4.5
    low, high = (0, 60) if scheme == "dark" else (200, 256)
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert all(low <= int(part) < high for part in re.findall(r"\d+", ground)[:3])


def test_the_policy_lets_no_script_in(visit: Open, address: str) -> None:
    opened = visit(address)
    shown = opened.ready()
    policy = shown.request.get(address, headers={"accept": "text/html"}).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    ran = shown.evaluate(
        """() => {
          const script = document.createElement("script");
          try { script.textContent = "window.ran = 1"; document.body.append(script); } catch {}
          try { document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 1'>"); } catch {}
          return window.ran ?? null;
        }"""
    )
    assert ran is None
    opened.wrong.clear()
