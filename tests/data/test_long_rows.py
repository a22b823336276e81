"""Rows without end: what is read of a file is bounded, and who sends more is told where."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.data.tables import parquet
from textcls import Classifier, InputError
from textcls.cli import main
from textcls.data import BadRows, ReadOptions, open_table
from textcls.data.rows import LONGEST
from textcls.model import artifact

BLOCK = gzip.compress(b"a" * LONGEST, 1)
TOLD = "more than 16,000,000 characters, the most that a row may have"
# Runs a command and says, last, how many kilobytes it took: those of its own, unlike `ru_maxrss`.
MEASURED = """
import sys
from textcls.cli import main
try:
    main(prog_name="textcls")
finally:
    with open("/proc/self/status") as status:
        print(*(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
"""
BEFORE = {
    "csv": b"text,other\nhello,1\n",
    "tsv": b"text\tother\nhello\t1\n",
    "jsonl": b'{"text": "hello"}\n',
    "txt": b"__label__a hello\n",
}
AFTER = {
    "csv": b'\n"late, but there",2\n',
    "tsv": b"\nlate, but there\t2\n",
    "jsonl": b'\n{"text": "late, but there"}\n',
    "txt": b"\n__label__a late, but there\n",
}


def endless(path: Path, blocks: int) -> Path:
    """A gzipped file with a row before and a row after a line of so many times the longest row."""
    kind = path.suffixes[0][1:]
    path.write_bytes(gzip.compress(BEFORE[kind]) + BLOCK * blocks + gzip.compress(AFTER[kind]))
    return path


def measured(*arguments: str | Path, stdin: Path | None = None) -> tuple[int, str, int]:
    """The exit code of a command, what it says, and the megabytes that it takes."""
    with (stdin or Path("/dev/null")).open("rb") as file:
        line = [sys.executable, "-c", MEASURED, *map(str, arguments)]
        done = subprocess.run(line, stdin=file, capture_output=True, text=True, timeout=300)
    *said, kilobytes = done.stderr.splitlines()
    return done.returncode, "\n".join(said), int(kilobytes) >> 10


@pytest.mark.parametrize("kind", BEFORE)
@pytest.mark.parametrize("skip", [False, True])
def test_a_line_without_end_is_refused_or_passed_over_and_never_held(
    model_path: Path, tmp_path: Path, kind: str, skip: bool
) -> None:
    data = endless(tmp_path / f"new.{kind}.gz", 15)
    assert data.stat().st_size < 4e6
    output = tmp_path / "answers.jsonl"
    options = ["--on-error", "skip"] if skip else []
    status, said, megabytes = measured("predict", model_path, data, "-o", output, *options)
    line = 2 if kind in ("jsonl", "txt") else 3
    assert f"{data}, line {line}: {TOLD}" in said
    assert "Traceback" not in said
    assert megabytes < 200
    if skip:
        assert status == 0
        assert [json.loads(row)["text"] for row in output.read_text().splitlines()] == ["hello", "late, but there"]
    else:
        assert (status, output.exists()) == (3, False)


def test_a_line_without_end_on_standard_input_is_refused(model_path: Path, tmp_path: Path) -> None:
    data = endless(tmp_path / "new.jsonl.gz", 15)
    status, said, megabytes = measured("predict", model_path, "-", "-o", "-", stdin=data)
    assert status == 3
    assert said == f"Error: standard input, line 2: {TOLD}; shorten it or leave it out."
    assert megabytes < 200


def test_a_header_without_end_is_refused(model_path: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.csv.gz"
    data.write_bytes(BLOCK * 15)
    status, said, megabytes = measured("predict", model_path, data, "-o", "-")
    assert status == 3
    assert said == f"Error: {data}, line 1: {TOLD}; shorten it or leave it out."
    assert megabytes < 200


def test_a_quote_that_swallows_a_large_file_is_told_with_its_line_and_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text('text\nhello\n"open\n' + "more words\n" * 1_500_000)
    for skip in (False, True):
        with (
            open_table(path, bad=BadRows(skip=skip)) as table,
            pytest.raises(InputError, match=rf"new\.csv, line 3: {TOLD}; perhaps a quote in this row"),
        ):
            list(table.rows)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "lines"])
@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_the_longest_row_is_read_and_one_character_more_is_not(
    tmp_path: Path, kind: str, more: int, fits: bool
) -> None:
    frame = {"csv": ("text\n", "", "\n"), "jsonl": ("", '{"text": "', '"}\n'), "lines": ("", "", "\n")}[kind]
    length = LONGEST + more - len(frame[1]) - len(frame[2].rstrip("\n")) - (kind == "csv")
    path = tmp_path / "new.txt"
    path.write_text(frame[0] + frame[1] + "é" * length + frame[2] + frame[1] + "next" + frame[2])
    bad = BadRows(skip=True)
    with open_table(path, ReadOptions(format=kind), bad) as table:  # type: ignore[arg-type]
        texts = [row.fields["text"] for row in table.rows]
    assert [len(text) for text in texts] == ([length, 4] if fits else [4])
    assert bad.count == (not fits)


def test_line_numbers_count_the_lines_that_were_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text,n\na,1\n" + "b" * (LONGEST + 9) + "\nc,2\nd\n")
    bad = BadRows(skip=True)
    with open_table(path, bad=bad) as table:
        assert [(row.line, row.fields["text"]) for row in table.rows] == [(2, "a"), (4, "c")]
    assert [found.where for found in bad.shown] == [f"{path}, line 3", f"{path}, line 5"]


def test_a_parquet_file_whose_rows_must_be_too_long_is_refused_before_it_is_unpacked(
    model_path: Path, tmp_path: Path
) -> None:
    path = parquet(tmp_path / "new.parquet", {"text": ["a" * (2 * LONGEST)]}, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 1e6
    status, said, megabytes = measured("predict", model_path, path, "-o", tmp_path / "answers.jsonl")
    assert status == 3
    assert said == f"Error: {path}, row 1 or after: {TOLD}; write the file again with shorter rows."
    assert megabytes < 200


def test_a_value_of_parquet_that_is_too_long_is_a_row_that_cannot_be_used(tmp_path: Path) -> None:
    path = parquet(tmp_path / "new.parquet", {"text": ["a", "b" * (LONGEST + 1), "c", *["d"] * 200]})
    with open_table(path) as table, pytest.raises(InputError, match=rf"new\.parquet, row 2: {TOLD}"):
        list(table.rows)
    bad = BadRows(skip=True)
    with open_table(path, bad=bad) as table:
        assert [(row.line, row.fields["text"]) for row in table.rows][:3] == [(1, "a"), (3, "c"), (4, "d")]
    assert [found.where for found in bad.shown] == [f"{path}, row 2"]


def test_what_is_called_parquet_and_is_none_is_not_unpacked_to_the_disk(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.parquet.gz"
    path.write_bytes(BLOCK)
    found = CliRunner().invoke(main, ["predict", str(model_path), str(path), "-o", "-"])
    assert found.exit_code == 3
    assert "is not a Parquet file, or it is damaged or cut off" in found.output


@pytest.mark.parametrize("unit", ["ab ", "語", "!"])
def test_a_text_that_is_far_longer_than_is_read_takes_no_more_memory_than_it_has(
    model_path: Path, tmp_path: Path, unit: str
) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps({"text": unit * (9_000_000 // len(unit))}, ensure_ascii=False) + "\n")
    status, _, megabytes = measured("predict", model_path, path, "-o", tmp_path / "answers.jsonl")
    assert status == 0
    assert megabytes < 280
    (answer,) = map(json.loads, (tmp_path / "answers.jsonl").read_text().splitlines())
    assert answer["decision"] == "accept"


@pytest.mark.parametrize("text", ["my card was charged twice " * 40, "語" * 200, "é! " * 90 + "x" * 500])
def test_what_is_cut_off_a_long_text_changes_no_answer(classifier: Classifier, text: str) -> None:
    answer = classifier.predict(text, explain=True)
    assert answer.truncated
    given = {artifact.INPUT: np.array([text], object)}
    whole = dict(zip(artifact.OUTPUTS, classifier.graph.session.run(artifact.OUTPUTS, given), strict=True))
    assert answer.explanation is not None
    assert np.array_equal(answer.probabilities, whole["probabilities"][0])
    assert np.array_equal(answer.explanation.contributions, whole["contributions"][0])
