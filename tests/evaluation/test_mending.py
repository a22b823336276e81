"""`textcls check --write`: rows without what everybody would mend."""

import json
from pathlib import Path

import pytest

from tests.command_line import fail, read_rows, run, succeed, write_rows

MESSY = [
    ["id", "text", "label"],
    ["1", "where is my parcel", "Shipping"],
    ["2", "charged <b class='x'>twi</b>ce &amp; again<br>if a<b && c>d", "billing"],
    ["3", "late parcel", "shipping  "],
    ["4", "where is my <i>parcel</i>", "shipping"],
    ["5", "no parcel", "shipping"],
    ["6", "<p>&nbsp;</p>", "shipping"],
    ["7", "where is my parcel", "billing"],
    ["8", "<style>p {color: red}</style><!-- hidden -->&lt;b&gt;bold&lt;/b&gt; &euro;", "no-go"],
    ["9", "a grade", "nogo"],
    ["10", "0", "nogo"],
]


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A table with every kind of mistake."""
    return write_rows(tmp_path / "messy.csv", MESSY)


def test_all_kinds_are_mended_and_counted_and_the_result_has_nothing_left_to_mend(messy: Path) -> None:
    clean, again = messy.with_name("clean.csv"), messy.with_name("again.csv")
    said = succeed("check", messy, "--write", clean)
    assert [tuple(row.values()) for row in read_rows(clean)] == [
        ("1", "where is my parcel", "shipping"),
        ("2", "charged twice & again if a<b && c>d", "billing"),
        ("3", "late parcel", "shipping"),
        ("5", "no parcel", "shipping"),
        ("7", "where is my parcel", "billing"),
        ("8", "bold \u20ac", "no-go"),
        ("9", "a grade", "nogo"),
        ("10", "0", "nogo"),
    ]
    assert said.splitlines()[-5:] == [
        f"8 rows -> {clean}",
        "2 rows have another label: 'Shipping' is 'shipping' now, 'shipping  ' is 'shipping' now.",
        "HTML taken out of 4 texts.",
        "1 copy of earlier rows left out.",
        "1 row without a text left out.",
    ]
    assert succeed("check", clean, "--write", again).splitlines()[-1] == f"8 rows -> {again}"
    assert again.read_bytes() == clean.read_bytes()


def test_tags_that_a_text_speaks_of_stay_and_texts_that_are_escaped_as_a_whole_lose_theirs(tmp_path: Path) -> None:
    texts = {
        "How do I center a &lt;div&gt; in &lt;body&gt;?": "How do I center a &lt;div&gt; in &lt;body&gt;?",
        "The <b>&lt;br&gt;</b> tag &amp; others": "The &lt;br&gt; tag & others",
        "&amp;lt;p&amp;gt; shows up": "&lt;p&gt; shows up",
        "AT&amp;amp;T <br> &amp;quot;hi&amp;quot;": 'AT&T "hi"',
        "&lt;p class='x'&gt;my parcel&lt;/p&gt; &lt;br&gt;late": "my parcel late",
        "<html><head><title>Mail</title><meta charset='utf-8'></head><body>hello</body></html>": "Mail hello",
        "<blockquote>quoted</blockquote> bye<hr>": "quoted bye",
        "<!DOCTYPE html><main><section>one<input disabled><dl><dt>two</dt></dl></section></main>": "one two",
        "<img alt='a > b' src=x>x<sup>2</sup> <o:p>&nbsp;</o:p>": "x2",
        "&lt;help@acme.com&gt; wrote: &lt;your name&gt;": "<help@acme.com> wrote: <your name>",
        "Meet <name> at <time>, <address>": "Meet <name> at <time>, <address>",
    }
    path = write_rows(
        tmp_path / "rows.csv", [("text", "label"), *((text, f"l{i % 2}") for i, text in enumerate(texts))]
    )
    for name in ("clean.csv", "again.csv"):
        succeed("check", path, "--write", tmp_path / name)
        assert [row["text"] for row in read_rows(tmp_path / name)] == list(texts.values())
        path = tmp_path / name


def test_only_the_kinds_that_are_named_are_mended_and_json_counts_them(messy: Path) -> None:
    clean = messy.with_name("clean.csv")
    found = json.loads(succeed("check", messy, "--write", clean, "--mend", "labels", "--json"))["mended"]
    assert found["renamed"] == {"Shipping": "shipping", "shipping  ": "shipping"}
    assert (found["rows"], found["labels"], found["html"], found["empty"], found["duplicates"]) == (10, 2, 0, 0, 0)
    assert [row["text"] for row in read_rows(clean)] == [row[1] for row in MESSY[1:]]


def test_a_row_that_cannot_be_used_ends_the_work_unless_it_may_be_skipped_which_is_told(messy: Path) -> None:
    write_rows(messy, [*MESSY, ["11", "no label", ""], ["12", "too", "many", "fields"]])
    clean = messy.with_name("clean.csv")
    assert "line 13: 4 fields" in fail(3, "check", messy, "--write", clean)
    assert not clean.exists()
    result = run("check", messy, "--write", clean, "--on-error", "skip")
    assert "! 2 rows cannot be used: " in result.stdout
    assert "1 row without a text left out." in result.stdout


@pytest.mark.parametrize("text", ["<!--" * 50_000, "<script>" * 50_000, "<b " * 50_000, "<a x=1 " * 50_000])
def test_marks_that_never_end_are_left_as_they_are(messy: Path, text: str) -> None:
    write_rows(messy, [*MESSY[:1], ["1", text, "x"], ["2", "y", "z"]])
    clean = messy.with_name("clean.csv")
    succeed("check", messy, "--write", clean)
    assert read_rows(clean)[0]["text"] == text


def test_nothing_that_is_there_is_written_over(messy: Path) -> None:
    before = messy.read_bytes()
    link = messy.with_name("link.csv")
    link.symlink_to(messy)
    for place in (messy, link):
        assert "also the input" in fail(3, "check", messy, "--write", place)
    assert "a file of its own" in fail(2, "check", messy, "--write", "-")
    assert fail(2, "check", messy, "--write", messy.with_name("clean.txt")).endswith(".xz or .zst.\n")
    assert "need files of their own" in fail(2, "check", messy, "--labels", "--suspects", "s.csv", "--write", "s.csv")
    assert "in a folder that is read" in fail(2, "check", messy.parent, "--write", messy.parent / "clean.csv")
    assert messy.read_bytes() == before


def test_what_cannot_be_mended_is_refused_in_a_sentence_and_nothing_is_written(messy: Path) -> None:
    clean = messy.with_name("clean.csv")
    assert "--weight-column" in fail(2, "check", messy, "--weight-column", "id", "--write", clean)
    assert "--mend needs --write" in fail(2, "check", messy, "--mend", "html")
    assert "--escape-formulas needs --write or --suspects" in fail(2, "check", messy, "--escape-formulas")
    assert not clean.exists()


@pytest.mark.parametrize(
    ("separator", "cells", "mended"),
    [
        (";", ["a;B", "b;A", " A ; b", "A;c", "", "b;a;A"], ["A;b", "b;A", " A ; b", "A;c", "", "b;A"]),
        (
            "json",
            ['["a", "B"]', '["b", "A"]', '{"A": 0.9}', '{"a": 1, "b": 0.5}'],
            ['["A", "b"]', '["b", "A"]', '{"A": 0.9}', '{"b": 0.5, "A": 1}'],
        ),
    ],
)
def test_labels_of_a_set_that_differ_by_case_get_one_name_and_each_stands_there_once(
    separator: str, cells: list[str], mended: list[str], tmp_path: Path
) -> None:
    more = ["A;b"] * 4 if separator == ";" else ['["A", "b"]'] * 4
    rows = [[f"text {i}", cell] for i, cell in enumerate([*cells, *more])]
    data, clean = write_rows(tmp_path / "tags.csv", [["text", "label"], *rows]), tmp_path / "clean.csv"
    said = succeed("check", data, "--label-separator", separator, "--write", clean)
    assert [row["label"] for row in read_rows(clean)] == [*mended, *more]
    assert "'a' is 'A' now" in said
    assert "'B' is 'b' now" in said


def test_rows_of_fasttext_with_one_label_and_with_several_become_lists_alike(tmp_path: Path) -> None:
    data, clean = tmp_path / "tags.txt", tmp_path / "clean.csv"
    data.write_text("__label__X __label__y some text\n__label__x other\n__label__X more\n", encoding="utf-8")
    succeed("check", data, "--write", clean)
    assert [json.loads(row["label"]) for row in read_rows(clean)] == [["X", "y"], ["X"], ["X"]]
    assert "X" in succeed("check", clean, "--label-separator", "json")


def test_probabilities_of_a_map_in_parquet_stay(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    maps = pyarrow.array([[("a", 0.5), ("b", 1.0)], [("A", 1.0)], [("A", 0.75)]], pyarrow.map_("string", "float64"))
    parquet.write_table(pyarrow.table({"text": ["x", "y", "z"], "label": maps}), tmp_path / "tags.parquet")
    succeed("check", tmp_path / "tags.parquet", "--write", tmp_path / "clean.jsonl")
    found = [json.loads(line)["label"] for line in (tmp_path / "clean.jsonl").read_text().splitlines()]
    assert [dict(label) for label in found] == [{"A": 0.5, "b": 1.0}, {"A": 1.0}, {"A": 0.75}]


def test_copies_are_rows_of_the_same_labels_whatever_their_order_and_columns_of_labels_keep_their_names(
    tmp_path: Path,
) -> None:
    data, clean = tmp_path / "tags.csv", tmp_path / "clean.csv"
    write_rows(data, [["text", "label"], ["<b>hi</b>", "x;y"], ["hi", "y;x"], ["hi", "x"], ["", "x"]])
    said = succeed("check", data, "--label-separator", ";", "--write", clean)
    assert [tuple(row.values()) for row in read_rows(clean)] == [("hi", "x;y"), ("hi", "x")]
    assert "1 copy of earlier rows left out." in said
    write_rows(data, [["text", "tag_a", "tag_A"], ["hi", "1", "0"], ["ho", "0", "1"], ["hi", "1", ""]])
    succeed("check", data, "--label-columns", "tag_*", "--write", clean)
    assert [tuple(row.values()) for row in read_rows(clean)] == [("hi", "1", "0"), ("ho", "0", "1")]


def test_check_counts_rows_that_cannot_be_used_and_goes_on_unless_they_would_be_left_out_of_a_table(
    tmp_path: Path,
) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), ("a", "x"), ("b", ""), ("c", "y"), ("d", " ")])
    found = run("check", data)
    assert found.exit_code == 0
    assert found.stdout.startswith("2 rows, 2 labels")
    assert "! 2 rows cannot be used: " in found.stdout
    assert "No problems found." not in found.stdout
    (finding, *_) = json.loads(succeed("check", data, "--json"))["findings"]
    assert (finding["kind"], finding["count"]) == ("unusable", 2)
    assert "line 3: the label in column 'label' is empty; " in finding["message"]
    for stops in (("--on-error", "fail"), ("--write", tmp_path / "clean.csv")):
        assert "line 3: the label in column 'label' is empty" in fail(3, "check", data, *stops)
    assert not (tmp_path / "clean.csv").exists()
