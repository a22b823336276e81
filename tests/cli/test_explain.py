"""`textcls explain`: one text in every form."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.conftest import TEXTS
from tests.command_line import fail, run, succeed
from tests.explanations import explained
from textcls import Classifier
from textcls.cli import main


def test_explain_shows_the_text_its_labels_and_each_token(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[0])
    answer = classifier.predict(TEXTS[0], explain=True)
    first, second, third = answer.top(3)
    lines = output.splitlines()
    assert lines[0] == TEXTS[0]
    assert lines[2].split("   ") == [f"{s.label} {s.score:.1%}" for s in (first, second, third)]
    rows = [line.replace(" (unknown)", "").split() for line in lines[4:]]
    assert rows[0] == ["token", "attention", "evidence", first.label, second.label]
    explanation = explained(answer)
    count = len(explanation.tokens)
    for row, token, evidence in zip(rows[1 : 1 + count], explanation.tokens, explanation.evidence(), strict=True):
        added = [f"{token.contributions[s.label]:+.3f}" for s in (first, second)]
        assert row == [token.text, f"{token.attention:.3f}", f"{evidence:+.3f}", *added]
    attribution = explanation.attribution()
    bias, logit = rows[1 + count : 3 + count]
    assert bias == [
        "(bias)",
        f"{attribution.bias:+.3f}",
        *(f"{explanation.bias[s.label]:+.3f}" for s in (first, second)),
    ]
    logits = [f"{explanation.logits[s.label]:+.3f}" for s in (first, second)]
    assert logit == ["=", "logit", f"{attribution.total:+.3f}", *logits]
    assert lines[-1].startswith("Checked: bias + tokens = logit, ")
    assert "\x1b" not in output


def test_explain_says_that_a_text_was_cut(model_path: Path) -> None:
    assert "longer than the model reads" in succeed("explain", model_path, TEXTS[5])
    assert "longer than the model reads" not in succeed("explain", model_path, TEXTS[0])


@pytest.mark.parametrize("text", ["", " \n"])
def test_explain_says_that_a_text_has_no_tokens(model_path: Path, tmp_path: Path, text: str) -> None:
    said = "The text has no tokens: the answer is the bias alone."
    page = tmp_path / "why.html"
    assert said in succeed("explain", model_path, text)
    succeed("explain", model_path, text, "--html", page)
    assert said in page.read_text(encoding="utf-8")
    assert said not in succeed("explain", model_path, TEXTS[0])


def test_explain_prints_one_json_object_that_adds_up(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[2], "--json")
    assert output.count("\n") == 1
    found = json.loads(output)
    answer = classifier.predict(TEXTS[2], explain=True)
    assert (found["label"], found["score"]) == (answer.label, pytest.approx(answer.score, abs=1e-6))
    assert [TEXTS[2][token["start"] : token["end"]] for token in found["tokens"]] == [
        token.text for token in explained(answer).tokens
    ]
    for label, logit in explained(answer).logits.items():
        parts = found["bias"][label] + sum(token["contributions"][label] for token in found["tokens"])
        assert parts == pytest.approx(logit, abs=1e-4)


def test_explain_takes_an_empty_text(model_path: Path) -> None:
    assert "(bias)" in succeed("explain", model_path, "")
    assert json.loads(succeed("explain", model_path, "", "--json"))["tokens"] == []


def test_a_text_cannot_send_commands_to_the_terminal(model_path: Path) -> None:
    output = succeed("explain", model_path, "\x1b[31mmy \x1b]0;title\x07card\x9b31m")
    assert not set("\x1b\x07\x9b") & set(output)
    assert "card" in output


def test_markup_in_a_text_is_shown_as_it_is(model_path: Path) -> None:
    assert succeed("explain", model_path, "[bold]card[/bold] :smile:").startswith("[bold]card[/bold] :smile:\n")


def token_rows(output: str) -> list[list[str]]:
    """The words of the lines below the head of the table."""
    lines = output.splitlines()
    return [line.split() for line in lines[next(i for i, line in enumerate(lines) if line.startswith("token ")) + 1 :]]


def test_explain_says_why_one_label_and_not_another(model_path: Path, classifier: Classifier) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    label, against = explanation.labels[:2]
    output = succeed("explain", model_path, TEXTS[0], "--label", label, "--contrast", against).replace(" (unknown)", "")
    assert f"why {label} and not {against}:" in output.splitlines()
    assert ["token", "attention", "difference", label, against] in [line.split() for line in output.splitlines()]
    shown = [(row[0], row[2]) for row in token_rows(output)[: len(explanation.tokens)]]
    contrast = [f"{value:+.3f}" for value in explanation.contrast(label, against)]
    assert shown == list(zip((token.text for token in explanation.tokens), contrast, strict=True))


def test_explain_explains_another_label_than_the_winner(model_path: Path, classifier: Classifier) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    assert explanation.runner_up is not None
    output = succeed("explain", model_path, TEXTS[0], "--label", explanation.runner_up)
    assert re.search(rf"^{explanation.runner_up}, [\d.]+%, against all others:$", output, re.MULTILINE)
    # The label itself stands first, then the one that beats it.
    heads = ["token", "attention", "evidence", explanation.runner_up, explanation.label]
    assert heads in [line.split() for line in output.splitlines()]


@pytest.mark.parametrize("option", ["--label", "--contrast"])
def test_a_label_that_does_not_exist_is_answered_with_the_nearest(model_path: Path, option: str) -> None:
    message = fail(2, "explain", model_path, "hi", option, "Biling")
    assert "The model has no label 'Biling' (did you mean 'billing'?); its labels are " in message
    assert "did you mean" not in fail(2, "explain", model_path, "hi", option, "qqqq")


def test_a_label_is_not_held_against_itself(model_path: Path) -> None:
    message = fail(2, "explain", model_path, "hi", "--label", "billing", "--contrast", "billing")
    assert "'billing' cannot be contrasted with itself; name another label." in message


def test_explain_lists_the_strongest_tokens_in_reading_order_and_says_what_they_carry(
    model_path: Path, classifier: Classifier
) -> None:
    output = succeed("explain", model_path, TEXTS[0], "--top", "2")
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    strongest = sorted(explanation.top(2), key=lambda token: token.start)
    assert [row[0] for row in token_rows(output)[:2]] == [token.text for token in strongest]
    assert f"({len(explanation.tokens) - 2} others)" in output
    assert f"The 2 tokens shown carry {explanation.covered(2):.1%} of the evidence." in output.splitlines()


def test_the_numbers_of_the_table_add_up_whatever_is_left_out(model_path: Path) -> None:
    lines = succeed("explain", model_path, "refund my parcel please now", "--top", "2").splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("token"))
    parts = [re.findall(r"[+-]\d+\.\d{3}", line) for line in lines[head + 1 : head + 5]]
    total = re.findall(r"[+-]\d+\.\d{3}", lines[head + 5])
    for column in range(3):
        assert sum(float(part[column]) for part in parts) == pytest.approx(float(total[column]), abs=0.003)


def test_explain_says_why_it_abstains(model_path: Path, classifier: Classifier) -> None:
    score = classifier.predict("hello there").score
    output = succeed("explain", model_path, "hello there", "--threshold", "1")
    assert f"It abstains: the best score, {score:.1%}, is below the threshold of 100.0%." in output
    assert "abstains" not in succeed("explain", model_path, "hello there")


def test_explain_lists_the_words_that_are_unknown_to_the_model(model_path: Path, classifier: Classifier) -> None:
    text = "My zqxv was zqxw"
    output = succeed("explain", model_path, text, "--threshold", "1")
    share = 1 - classifier.explain(text).known_share
    listed = f"Unknown to the model: zqxv, zqxw (2 of 4 tokens, {share:.1%} of the evidence)."
    assert listed in output.splitlines()
    assert "Of its 4 tokens, 2 are unknown to the model." in output
    assert [row[0] for row in token_rows(output) if "(unknown)" in row] == ["zqxv", "zqxw"]
    found = json.loads(succeed("explain", model_path, text, "--json"))
    assert [token["known"] for token in found["tokens"]] == [True, False, True, False]
    assert "nknown" not in succeed("explain", model_path, "my card")
    assert "(2 of 2 tokens, which add nothing)." in succeed("explain", model_path, "\U0001f600\U0001f600")


def part_rows(output: str) -> list[list[str]]:
    """The cells of the lines of the table of parts, less its head."""
    lines = output.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("part "))
    behind = next(i for i, line in enumerate(lines) if i > first and not line.strip())
    return [re.split(r"  +", line.strip()) for line in lines[first + 1 : behind]]


@pytest.mark.parametrize("text", ["My card zqxvarge was charged TWICE!!", "refund", "", "zqxv"])
def test_sub_token_attributions_add_up_to_the_tokens(model_path: Path, classifier: Classifier, text: str) -> None:
    output = succeed("explain", model_path, text, "--parts", "--top", "5")
    attribution = classifier.explain(text).attribution()
    *rows, total = part_rows(output)
    assert total == ["= tokens", f"{attribution.values.sum() + 0.0:+.3f}"]
    values = [float(row[-1]) for row in rows]
    assert sum(values) == pytest.approx(float(total[-1]), abs=0.005)
    parts = classifier.parts(text)
    if len(parts) > 5:
        assert rows[-1][0] == f"({len(parts) - 5} others)"
        rows.pop()
    shown = [abs(float(row[-1])) for row in rows]
    assert shown == sorted(shown, reverse=True)
    assert {row[1] for row in rows} <= {"word", "pair", "piece"}
    assert re.search(r"^Checked: bias \+ tokens = logit, .*; parts = tokens, (exactly|to \de-0[678])\.$", output, re.M)
    found = json.loads(succeed("explain", model_path, text, "--parts", "--json"))["parts"]
    assert found == [json.loads(json.dumps(part.as_json(text))) for part in parts]
    assert "parts" not in json.loads(succeed("explain", model_path, text, "--json"))


def test_a_pair_with_the_edge_of_a_text_shows_the_edge(model_path: Path, classifier: Classifier) -> None:
    edges = [part.edge for part in classifier.parts("The lamp?") if part.kind == "pair"]
    assert edges == ["start", None, "end"]
    names = [row[0] for row in part_rows(succeed("explain", model_path, "The lamp?", "--parts"))]
    assert {"\u27e8start\u27e9 The", "The lamp", "? \u27e8end\u27e9"} <= set(names)


def test_sub_token_attributions_of_a_contrast_add_up_to_it(model_path: Path, classifier: Classifier) -> None:
    output = succeed("explain", model_path, TEXTS[0], "--parts", "--label", "sales", "--contrast", "returns")
    assert ["part", "kind", "difference"] in [line.split() for line in output.splitlines()]
    difference = classifier.explain(TEXTS[0]).contrast("sales", "returns").sum()
    assert part_rows(output)[-1] == ["= tokens", f"{difference:+.3f}"]


def test_a_page_has_sub_token_attributions_on_request(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "why.html"
    for options in ([], ["--parts"]):
        succeed("explain", model_path, "my card", "--html", path, *options)
        assert ("parts = tokens" in path.read_text(encoding="utf-8")) == bool(options)


@pytest.mark.parametrize("options", [[], ["--json"], ["--html", "why.html"]])
def test_a_model_that_credits_whole_tokens_only_says_so(
    whole_tokens_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    message = fail(2, "explain", whole_tokens_path, "my card", "--parts", *options)
    assert "whole.onnx attributes to whole tokens only, since it has " in message
    assert list(tmp_path.iterdir()) == []
    assert "(bias)" in succeed("explain", whole_tokens_path, "my card")


def test_explain_reads_a_text_from_standard_input(model_path: Path) -> None:
    def piped(given: bytes) -> Result:
        return CliRunner().invoke(main, ["explain", str(model_path), "-", "--json"], input=given)

    sent = json.loads(piped("my c\u00e4rd\r\n".encode()).stdout)
    assert sent == json.loads(succeed("explain", model_path, "my c\u00e4rd", "--json"))
    wrong = piped(b"one\ntw\xff")
    assert (wrong.exit_code, wrong.stdout) == (3, "")
    assert wrong.stderr == "Error: Standard input, line 2: byte 0xff is not UTF-8; send the text as UTF-8.\n"


def test_explain_writes_a_page_of_its_own(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "why.html"
    output = succeed("explain", model_path, "my <b>card</b>", "--contrast", "sales", "--html", path)
    assert re.fullmatch(rf"\w+ [\d.]+% -> {path}\n", output)
    written = path.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    assert "and not <bdi>sales</bdi>" in written
    assert "<b>card</b>" not in written


def test_a_page_is_not_written_over_the_model_nor_into_a_folder_that_is_missing(
    model_path: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(model_path.read_bytes())
    fail(3, "explain", model, "hi", "--html", model)
    assert model.read_bytes() == model_path.read_bytes()
    assert "does not exist" in fail(6, "explain", model, "hi", "--html", tmp_path / "no" / "a.html")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<script>alert(1)</script>",
        "\x1b[31m\a\b",
        "half \ud83d",
        "\u0643\u062a\u0628\u062a \u202eabc",
        "\u200d\u0301",
    ],
    ids=["empty", "script", "controls", "surrogate", "right-to-left", "nothing-to-see"],
)
def test_awkward_texts_are_explained_in_every_form(model_path: Path, tmp_path: Path, text: str) -> None:
    for options in ([], ["--json"], ["--html", str(tmp_path / "a.html")]):
        output = succeed("explain", model_path, *options, "--", text)
        # JSON escapes what steers a terminal; what else is in it is data.
        assert not set("\x1b\a\b" if options == ["--json"] else "\x1b\a\b\u202e") & set(output)
        output.encode()
    (tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_json_of_explain_holds_what_the_explanation_says_of_itself(
    model_path: Path, classifier: Classifier
) -> None:
    explanation = explained(classifier.predict(TEXTS[0], explain=True))
    found = json.loads(
        succeed("explain", model_path, TEXTS[0], "--json", "--contrast", "returns", "--threshold", "0.2")
    )
    assert {name: found[name] for name in explanation.as_json()} == explanation.as_json()
    assert found["evidence"] == explanation.attribution(None, "returns").as_json()
    assert found["threshold"] == 0.2


def test_words_without_quotes_and_the_name_of_a_file_are_told_of(model_path: Path, tmp_path: Path) -> None:
    said = run("explain", model_path, "my", "card").stderr
    assert f'Put the text in quotes: textcls explain {model_path} "my card"' in said
    assert "No such option: --lable" in run("explain", model_path, "--lable", "x", "my text").stderr
    (tmp_path / "rows.csv").touch()
    assert "Note: this explains the words " in run("explain", model_path, str(tmp_path / "rows.csv")).stderr


def test_a_text_may_begin_with_a_hyphen(model_path: Path) -> None:
    assert "euros" in succeed("explain", model_path, "-5 euros")


def test_of_a_long_text_the_strongest_tokens_are_listed(model_path: Path) -> None:
    words = " ".join(f"refund{i}" for i in range(64))
    output = succeed("explain", model_path, words)
    assert "(14 others)" in output
