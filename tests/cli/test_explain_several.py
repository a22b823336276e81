"""`textcls explain` and `inspect` with a model that may give several labels a text: why each, and why not another."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.several import several_rows
from tests.command_line import read_rows, succeed, write_rows
from textcls import Classifier, explain_globally
from textcls.display.html.global_explanation import global_explanation_fragment

TWO = "I forgot my password and want to cancel my subscription"
NONE = "Good morning team, all is well here."


def numbers(line: str) -> list[float]:
    return [float(number) for number in re.findall(r"[+-]\d+\.\d+", line)]


def test_each_label_that_is_assigned_is_explained_by_its_own_tokens(
    several_labels_path: Path, several_labels: Classifier
) -> None:
    output = succeed("explain", several_labels_path, TWO)
    answer = several_labels.predict(TWO, explain=True)
    assert len(answer.assigned) == 2
    assert answer.thresholds is not None
    limits = dict(zip(answer.label_names, answer.thresholds.tolist(), strict=True))
    scores = [
        f"{s.label} {s.score:.1%} (from {limits[s.label]:.1%} on)" for s in answer.top() if s.label in answer.assigned
    ]
    assert output.splitlines()[0] == "   ".join(scores)
    sections = output.split("why ")[1:]
    assert [section.partition(":")[0] for section in sections] == list(answer.assigned)
    explanation = answer.explanation
    assert explanation is not None
    for section, label in zip(sections, answer.assigned, strict=True):
        lines = section.splitlines()
        assert lines[1] == TWO
        table = lines[2 : 2 + len(explanation.tokens) + 3]
        assert table[0].split() == ["token", "attention", "evidence"]
        *tokens, bias, logit = [numbers(line)[-1] for line in table[1:]]
        assert sum(tokens) + bias == pytest.approx(logit, abs=0.02)
        assert logit == pytest.approx(explanation.logits[label], abs=5e-4)
        np.testing.assert_allclose(tokens, [token.contributions[label] for token in explanation.tokens], atol=5e-4)


def test_why_one_label_and_not_another_is_the_difference_of_both(
    several_labels_path: Path, several_labels: Classifier
) -> None:
    label, other = several_labels.predict(TWO).assigned
    explanation = several_labels.explain(TWO)
    for option in ("--against", "--contrast"):
        output = succeed("explain", several_labels_path, TWO, "--label", other, option, label)
        assert f"why {other} and not {label}:" in output
        logit = next(line for line in output.splitlines() if line.startswith("= logit"))
        difference = explanation.logits[other] - explanation.logits[label]
        assert numbers(logit)[0] == pytest.approx(difference, abs=1e-3)


def test_a_label_that_is_not_assigned_may_be_asked_for(several_labels_path: Path, several_labels: Classifier) -> None:
    other = next(name for name in several_labels.labels if name not in several_labels.predict(TWO).assigned)
    assert f"why not {other}:" in succeed("explain", several_labels_path, TWO, "--label", other)


def test_where_nothing_is_assigned_the_most_probable_label_is_explained_and_it_says_so(
    several_labels_path: Path, several_labels: Classifier
) -> None:
    answer = several_labels.predict(NONE)
    output = succeed("explain", several_labels_path, NONE)
    assert "It abstains: no label reaches its threshold" in output
    assert f"why not {answer.label}:" in output


def test_labels_beyond_the_first_three_are_named(several_labels_path: Path, several_labels: Classifier) -> None:
    answer = several_labels.predict(TWO, threshold=0.0)
    output = succeed("explain", several_labels_path, TWO, "--threshold", "0")
    assert output.count("why ") == 3
    assert output.splitlines()[-1] == (f"Assigned as well, and explained on request: {', '.join(answer.assigned[3:])}.")


def test_json_holds_what_is_assigned_the_thresholds_and_the_evidence_of_each(
    several_labels_path: Path, several_labels: Classifier
) -> None:
    found = json.loads(succeed("explain", several_labels_path, TWO, "--json"))
    assert tuple(found["assigned"]) == several_labels.predict(TWO).assigned
    assert list(found["thresholds"]) == list(several_labels.labels)
    assert [one["label"] for one in found["evidence_of_labels"]] == found["assigned"]
    for one in found["evidence_of_labels"]:
        assert one["bias"] + sum(one["tokens"]) == pytest.approx(one["total"], abs=1e-4)
        assert one["total"] == pytest.approx(found["logits"][one["label"]], abs=1e-6)


# inspect


def test_inspect_shows_the_task_and_the_threshold_of_each_label(
    several_labels_path: Path, several_labels: Classifier
) -> None:
    output = succeed("inspect", several_labels_path)
    info = several_labels.info
    facts = {line.split("  ")[0]: line for line in output.splitlines()}
    assert "multi-label" in facts["task"]
    assert f"break-even {info.training['held_out_break_even']:.2%}" in facts["held out"]
    assert {"temperature", "threshold"}.isdisjoint(facts)
    assert info.thresholds is not None
    rows = [line.split() for line in output.splitlines()]
    for label, threshold in zip(info.labels, info.thresholds, strict=True):
        assert any(row[:2] == [label, f"{threshold:.3f}"] for row in rows)
    told = json.loads(succeed("inspect", several_labels_path, "--json"))
    assert told == json.loads(info.to_metadata()["textcls"])


def test_inspect_shows_what_speaks_for_each_label_over_a_file_with_several(
    several_labels_path: Path, several_labels: Classifier, sample_path: Path, tmp_path: Path
) -> None:
    rows = several_rows(read_rows(sample_path))
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in rows))
    assert "No shortcuts found." in succeed("inspect", several_labels_path, "--evidence", data)
    found = json.loads(succeed("inspect", several_labels_path, "--evidence", data, "--json"))
    answers = several_labels.predict([text for text, _ in rows])
    assert (found["texts"], found["labelled"]) == (len(rows), len(rows))
    right = [set(answer.assigned) == set(labels) for answer, (_, labels) in zip(answers, rows, strict=True)]
    assert found["right"] == sum(right)
    counted = {label["label"]: label["answers"] for label in found["labels"]}
    assert counted == {name: sum(name in answer.assigned for answer in answers) for name in several_labels.labels}
    unlabelled = write_rows(tmp_path / "texts.csv", [("text",), *((text,) for text, _ in rows)])
    told = json.loads(succeed("inspect", several_labels_path, "--evidence", unlabelled, "--json"))
    assert (told["texts"], told["labelled"]) == (len(rows), 0)
    assert [label["words_for"] for label in told["labels"]] == [label["words_for"] for label in found["labels"]]


def test_a_word_decides_a_label_that_would_not_be_assigned_without_it(several_labels: Classifier) -> None:
    texts = ["refund"] * 5
    assert several_labels.predict("refund").assigned == ("returns",)
    found = explain_globally(several_labels, [(text, ["billing"]) for text in texts])
    (shortcut,) = found.deciding
    assert (shortcut.label, shortcut.text, shortcut.decided, shortcut.wrong) == ("returns", "refund", 5, 5)
    assert found.as_json()["several"]
    page = global_explanation_fragment("What it goes by", found)
    assert "without what it contributed, it would not have been assigned." in page
    assert "against all others" not in page
