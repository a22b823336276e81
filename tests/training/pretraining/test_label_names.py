"""The nearest name, the surest texts, and the file of names."""

import json
from pathlib import Path

import numpy as np
import pytest

from textcls.errors import InputError
from textcls_training.pretraining.label_names.descriptions import read_descriptions
from textcls_training.pretraining.label_names.nearest import similarities, surest


def test_what_all_texts_share_speaks_for_no_name() -> None:
    # All texts are near to the first name; beyond that, two of them lean to the second.
    text = np.array([[9, 1, 0], [9, 0, 1], [9, 0, 1]], np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    names = np.array([[0.9, 0.4, 0], [0, 0, 1]], np.float32)
    assert (text @ names.T).argmax(1).tolist() == [0, 0, 0]
    assert similarities(text, names).argmax(1).tolist() == [0, 1, 1]


def test_a_text_of_unknown_words_is_as_near_to_every_name() -> None:
    text = np.array([[1, 0], [0, 1], [0, 0]], np.float32)
    assert similarities(text, np.eye(2, dtype=np.float32))[2].tolist() == [0, 0]


def test_of_each_label_the_surest_stay_and_at_least_one() -> None:
    cosine = np.array([[0.9, 0.1], [0.5, 0.4], [0.8, 0.1], [0.6, 0.4], [0.1, 0.2]], np.float32)
    assert surest(cosine, 0.5).tolist() == [0, 2, 4]
    assert surest(cosine, 1.0).tolist() == [0, 1, 2, 3, 4]


def test_names_are_lines_or_json_with_words_or_a_table_of_texts(tmp_path: Path) -> None:
    lines, told, table = tmp_path / "names.txt", tmp_path / "names.json", tmp_path / "names.csv"
    table.write_text("label,text\nrefunds,money\ncards,card\nrefunds,back\n", "utf-8")
    assert read_descriptions(table) == {"refunds": "money back", "cards": "card"}
    lines.write_text("card_arrival\n\n Sci/Tech \n", "utf-8")
    told.write_text('{"refunds": "money back", "cards": "card"}', "utf-8")
    assert read_descriptions(lines) == {"card_arrival": "card arrival", "Sci/Tech": "Sci Tech"}
    assert read_descriptions(told) == {"refunds": "money back", "cards": "card"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("n.txt", b"one\n", "has one label, and at least two are needed"),
        ("n.txt", b"", "there are no labels"),
        ("n.txt", b"a\nb\na\n", "the label 'a' appears twice"),
        ("n.txt", b"a\n\xff\n", "is not UTF-8 (byte 2)"),
        ("n.json", b'{"a": "b"', "cannot be read as JSON"),
        ("n.json", b'["a", "b"]', "must map labels to their words"),
        ("n.json", b'{"a": "b", "c": 1}', "must map labels to their words"),
        ("n.json", b'{"a": "b", "a": "c"}', "a name appears twice"),
        ("n.json", json.dumps({"a" * 1001: "b", "c": "d"}).encode(), "label number 0 has 1,001 characters"),
    ],
)
def test_a_damaged_file_of_names_is_refused_in_a_sentence(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_descriptions(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_of_names_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*none\.txt"):
        read_descriptions(tmp_path / "none.txt")
