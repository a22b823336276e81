"""The bundled sample: enough of it, clean, varied, and its test part is new to a model."""

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse

from textcls.model.tokenizer import tokenize

SAMPLE = Path(__file__).parent.parent / "textcls" / "demo"
NEAR = 0.5


class Sample(NamedTuple):
    """A part of the sample: its header, texts and labels."""

    header: list[str]
    texts: list[str]
    labels: list[str]


def read(name: str) -> Sample:
    """Read with the csv module alone, in strict UTF-8: byte-order marks and stray bytes would show."""
    with (SAMPLE / name).open(encoding="utf-8", errors="strict", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    assert all(len(row) == 2 for row in rows)
    return Sample(header, [row[0] for row in rows], [row[1] for row in rows])


@pytest.fixture(scope="module")
def train() -> Sample:
    return read("support_tickets.csv")


@pytest.fixture(scope="module")
def test() -> Sample:
    return read("support_tickets_test.csv")


def jaccard(texts: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Jaccard similarity of the character 5-grams of each two texts; 0 of a text with itself."""
    number: dict[str, int] = {}
    grams = [{t[i : i + 5] for i in range(max(1, len(t) - 4))} for t in (" ".join(t.lower().split()) for t in texts)]
    columns = [number.setdefault(gram, len(number)) for found in grams for gram in sorted(found)]
    sizes = np.array([len(found) for found in grams])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    has = sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), len(number)))
    common = (has @ has.T).toarray()
    np.fill_diagonal(common, 0)
    return np.asarray(common / (sizes[:, None] + sizes[None, :] - common), np.float64)


def near_copies(texts: list[str]) -> list[tuple[str, str]]:
    return [(texts[i], texts[j]) for i, j in np.argwhere(np.triu(jaccard(texts)) > NEAR)]


def test_near_copies_are_found() -> None:
    texts = ["where is my parcel", "Where is  my parcels?", "cancel my plan, please", "my card was charged twice"]
    assert near_copies(texts) == [(texts[0], texts[1])]
    # {abcde, bcdef} and {bcdef, cdefg}: one of three is shared.
    assert jaccard(["abcdef", "bcdefg"])[0, 1] == pytest.approx(1 / 3)


def test_the_columns_are_text_and_label(train: Sample, test: Sample) -> None:
    assert train.header == test.header == ["text", "label"]


def test_there_are_800_rows_of_6_labels_and_a_test_part(train: Sample, test: Sample) -> None:
    assert len(train.texts) >= 800
    assert len(test.texts) >= 200
    assert len(set(train.labels)) >= 6
    assert set(test.labels) == set(train.labels)


def test_no_label_is_rare(train: Sample, test: Sample) -> None:
    assert min(Counter(train.labels).values()) >= 50
    assert min(Counter(test.labels).values()) >= 10


def test_no_field_is_empty_or_has_space_around_it(train: Sample, test: Sample) -> None:
    for field in (*train.texts, *train.labels, *test.texts, *test.labels):
        assert field
        assert field == field.strip()


def test_no_text_occurs_twice_in_either_part_or_in_both(train: Sample, test: Sample) -> None:
    tokens = Counter(tuple(tokenize(text)) for text in (*train.texts, *test.texts))
    assert [" ".join(found) for found, count in tokens.items() if count > 1] == []


def test_no_text_is_a_near_copy_of_another_in_either_part_or_across(train: Sample, test: Sample) -> None:
    assert near_copies([*train.texts, *test.texts]) == []


def test_the_sample_is_varied(train: Sample) -> None:
    lengths = np.array([len(tokenize(text)) for text in train.texts])
    assert lengths.min() < 10
    assert lengths.max() > 60
    beyond_latin = [text for text in train.texts if any(ord(c) > 0x24F and c.isalpha() for c in text)]
    emoji = [text for text in train.texts if any(0x1F300 <= ord(c) <= 0x1FAFF for c in text)]
    assert len(beyond_latin) >= 5
    assert len(emoji) >= 20
