import json
from pathlib import Path
from typing import Any

import pytest

from faithfulness.rationales import read_rationales
from textcls.errors import InputError


def write(folder: Path, *entries: Any) -> Path:
    path = folder / "rationales.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in entries) + "\n\n", encoding="utf-8")
    return path


def test_the_truth_is_the_union_of_the_annotators(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"row": 0, "tokens": ["a", "b", "c"], "rationales": [[1, 0, 0], [0, 0, 1]]},
        {"row": 4, "tokens": ["a"], "rationales": []},
    )
    found = read_rationales(path)
    assert found[0].gold == (True, False, True)
    assert found[0].label is None
    assert found[4].gold == (False,)


def test_words_that_speak_for_the_label_are_the_truth_of_sentiments(tmp_path: Path) -> None:
    entry = {"tokens": ["bad", "film", "great"], "token_labels": [0, 2, 4]}
    path = write(tmp_path, {"row": 0, "label": "positive", **entry}, {"row": 1, "label": "negative", **entry})
    found = read_rationales(path)
    assert (found[0].gold, found[0].label) == ((False, False, True), "positive")
    assert (found[1].gold, found[1].label) == ((True, False, False), "negative")


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"row": 0, "tokens": ["a"], "rationales": [[1, 0]]}, "2 marks for 1 tokens"),
        ({"row": 0, "tokens": ["a"]}, "token_labels"),
        ({"row": 0, "tokens": ["a"], "token_labels": [2], "label": "news"}, "label is 'news'"),
        ({"tokens": ["a"], "rationales": []}, "row"),
        (["a"], "TypeError"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, entry: Any, what: str) -> None:
    path = write(tmp_path, {"row": 0, "tokens": [], "rationales": []}, entry)
    with pytest.raises(InputError, match=rf"rationales\.jsonl, line 2: no rationale .*{what}"):
        read_rationales(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.jsonl cannot be read"):
        read_rationales(tmp_path / "nothing.jsonl")
