"""`textcls check --write`: rows without what everybody would mend."""

from pathlib import Path

import pytest

from tests.command_line import fail, read_rows, succeed, write_rows

MESSY = [
    ["id", "text", "label"],
    ["1", "where is my parcel", "Shipping"],
    ["2", "charged <b>twice</b> &amp; again", "billing"],
    ["3", "late parcel", "shipping"],
    ["4", "where is my parcel", "shipping"],
    ["5", "no parcel", "shipping"],
    ["6", "", "shipping"],
    ["7", "no label here", ""],
    ["8", "where is my parcel", "billing"],
]


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A table with every kind of mistake."""
    return write_rows(tmp_path / "messy.csv", MESSY)


def test_all_kinds_are_mended_and_counted(messy: Path) -> None:
    clean = messy.with_name("clean.csv")
    said = succeed("check", messy, "--write", clean)
    assert read_rows(clean) == [
        {"id": "1", "text": "where is my parcel", "label": "shipping"},
        {"id": "2", "text": "charged  twice  & again", "label": "billing"},
        {"id": "3", "text": "late parcel", "label": "shipping"},
        {"id": "5", "text": "no parcel", "label": "shipping"},
        {"id": "8", "text": "where is my parcel", "label": "billing"},
    ]
    assert said.splitlines()[-5:] == [
        f"5 rows -> {clean}",
        "1 row has another label: 'Shipping' is 'shipping' now.",
        "1 text without HTML.",
        "1 copy of earlier rows left out.",
        "2 rows without a text or a label left out.",
    ]
    assert "differ only" not in succeed("check", clean)


def test_only_the_kinds_that_are_named_are_mended(messy: Path) -> None:
    clean = messy.with_name("clean.csv")
    write_rows(messy, MESSY[:6])
    succeed("check", messy, "--write", clean, "--mend", "labels")
    found = read_rows(clean)
    assert [row["label"] for row in found] == ["shipping", "billing", "shipping", "shipping", "shipping"]
    assert found[1]["text"] == MESSY[2][1]


def test_what_cannot_be_mended_is_refused_in_a_sentence_and_nothing_is_written(messy: Path) -> None:
    clean = messy.with_name("clean.csv")
    write_rows(messy, [["text", "label"], ["a", '["x", "y"]'], ["b", '["x"]']])
    assert "one label each" in fail(2, "check", messy, "--label-separator", "json", "--write", clean)
    assert "--mend needs --write" in fail(2, "check", messy, "--mend", "html")
    assert not clean.exists()
