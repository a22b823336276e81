"""`textcls predict` on the files and pipes that people have: formats, order, memory, processes, and bad ends."""

import gzip
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.command_line import run
from textcls import Classifier, SurroundingsError
from textcls.data import Row, TextRow
from textcls.jobs.batch import workers
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls.jobs.batch.chunks import chunked
from textcls.jobs.batch.workers import answered

TEXTS = ["my card was charged twice", "", "two\nlines, one comma", "\u6ce8\u6587", "where is my parcel " * 3]
PROGRAM = [sys.executable, "-m", "textcls"]


def start(*args: str | Path, **options: Any) -> "subprocess.Popen[bytes]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def listen() -> None:  # Whoever started the tests in the background may have switched Ctrl-C off.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen([*PROGRAM, *map(str, args)], **{"preexec_fn": listen, **pipes, **options})


def interrupt(process: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C; once more if the first came in the moment before a read, which then does not hear it."""
    for _ in range(10):
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
            return
        except subprocess.TimeoutExpired:
            continue
    process.kill()


def write(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pyarrow.parquet.read_table(path).to_pylist())
    return [json.loads(line) for line in path.read_text().splitlines()]


# Formats and columns


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_answers_in_json_and_parquet_are_native_values(
    model_path: Path, classifier: Classifier, tmp_path: Path, suffix: str
) -> None:
    data, output = write(tmp_path / "new.jsonl", TEXTS), tmp_path / f"out{suffix}"
    result = run("predict", model_path, data, "-o", output, "--top-k", "2", "--explain")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"5 rows -> {output}\n", "Note: 1 text is empty.\n")
    for i, (row, answer) in enumerate(zip(read(output), classifier.predict(TEXTS, explain=True), strict=True)):
        assert (row["id"], row["text"]) == (i, TEXTS[i])
        assert (row["predicted_label"], row["decision"]) == (answer.label, "accept")
        assert row["score"] == pytest.approx(answer.score, abs=1e-6)
        top = [list(pair.values()) if isinstance(pair, dict) else pair for pair in row["top_labels"]]
        assert top == [[best.label, pytest.approx(best.score, abs=1e-6)] for best in answer.top(2)]
        shares = [list(pair.values()) if isinstance(pair, dict) else pair for pair in row["explanation"]]
        assert answer.explanation is not None
        assert shares == [
            [token.text, pytest.approx(token.contributions[answer.label], abs=1e-4)]
            for token in answer.explanation.tokens
        ]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz"])
def test_answers_in_tables_are_json_where_they_are_lists(model_path: Path, tmp_path: Path, name: str) -> None:
    data = write(tmp_path / "new.jsonl", TEXTS)
    assert run("predict", model_path, data, "-o", tmp_path / name, "--top-k", "1").exit_code == 0
    raw = (tmp_path / name).read_bytes()
    lines = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode().splitlines()
    sign = "\t" if name == "out.tsv" else ","
    assert lines[0] == sign.join(["id", "text", "predicted_label", "score", "decision", "top_labels"])
    assert '"[[""' in lines[1]


def test_the_output_format_asked_for_counts_more_than_the_name(model_path: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.jsonl", TEXTS)
    assert run("predict", model_path, data, "-o", tmp_path / "out.csv", "--output-format", "jsonl").exit_code == 0
    assert len(read(tmp_path / "out.csv")) == 5


def test_an_output_whose_name_says_no_format_is_a_wrong_call(model_path: Path, tmp_path: Path) -> None:
    result = run("predict", model_path, write(tmp_path / "new.jsonl", TEXTS), "-o", tmp_path / "out.xls")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "out.xls does not say a format" in result.stderr


def test_several_files_are_answered_one_behind_the_other(model_path: Path, tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.jsonl", TEXTS[:2]), write(tmp_path / "b.jsonl", TEXTS[2:])
    assert run("predict", model_path, first, second, "-o", tmp_path / "out.jsonl").exit_code == 0
    assert [row["text"] for row in read(tmp_path / "out.jsonl")] == TEXTS


def test_files_with_different_columns_are_not_put_into_one_table(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    (tmp_path / "b.csv").write_text("text\na\n")
    result = run("predict", model_path, tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 3
    assert f"{tmp_path / 'b.csv'} has no column 'id', which {tmp_path / 'a.csv'} has" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_a_column_that_is_not_that_of_the_training_is_reported(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Message\nmy card\n")
    result = run("predict", model_path, tmp_path / "a.csv", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0
    assert result.stderr == f"Note: {tmp_path / 'a.csv'} has no column 'text'; 'Message' is read as the text.\n"


def test_bad_rows_are_left_out_of_the_answers_and_told(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2\n3,c\n")
    result = run("predict", model_path, tmp_path / "a.csv", "-o", tmp_path / "out.csv", "--on-error", "skip", "--quiet")
    assert result.exit_code == 0
    assert result.stdout == f"2 rows -> {tmp_path / 'out.csv'}\n"
    assert "Skipped 1 row that cannot be used: " in result.stderr


def test_a_text_of_a_megabyte_is_answered(model_path: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.jsonl", ["word,\n" * 170_000])
    assert run("predict", model_path, data, "-o", tmp_path / "out.csv").exit_code == 0
    assert (tmp_path / "out.csv").stat().st_size > 1_000_000


def test_standard_input_can_be_named_only_once(model_path: Path) -> None:
    result = run("predict", model_path, "-", "-", "-o", "-", given="text\na\n")
    assert result.exit_code == 2
    assert "Standard input can be read only once" in result.stderr


# Pipes


@pytest.mark.parametrize(
    ("given", "head"),
    [
        ("text\nmy card\n", "text,predicted_label,score,decision\nmy card,"),
        ('{"text": "my card"}\n', '{"text": "my card", "predicted_label": "'),
        ("__label__x my card\n", "label,text,predicted_label,score,decision\nx,my card,"),
        ("a\ttext\n1\tmy card\n", "a,text,predicted_label"),
    ],
)
def test_a_pipe_is_answered_in_its_own_format(model_path: Path, given: str, head: str) -> None:
    result = run("predict", model_path, "-", "-o", "-", given=given)
    assert result.exit_code == 0
    assert result.stdout.startswith(head)


def test_each_line_of_a_pipe_is_answered_as_soon_as_it_is_read(model_path: Path) -> None:
    with start("predict", model_path, "-", "-o", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in ("my card", "my parcel"):
            process.stdin.write(json.dumps({"text": text}).encode() + b"\n")
            process.stdin.flush()
            # This would wait for ever if the answer waited for more lines.
            assert json.loads(process.stdout.readline())["text"] == text
        process.stdin.close()
        assert process.wait() == 0


def test_a_bad_line_of_a_pipe_is_reported_at_once_if_it_is_skipped(model_path: Path) -> None:
    with start("predict", model_path, "-", "-o", "-", "--on-error", "skip") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b'{"text": "my card"}\n[]\n')
        process.stdin.flush()
        assert process.stderr.readline().startswith(
            b"Note: skipped standard input, line 2: write one JSON object per line"
        )
        process.stdin.close()
        assert process.wait() == 0


def test_ctrl_c_leaves_whole_rows_on_standard_output(model_path: Path) -> None:
    with start("predict", model_path, "-", "-o", "-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"text": "my card"}\n{"text": "my')
        process.stdin.flush()
        first = process.stdout.readline()
        interrupt(process)
        rest, said = process.stdout.read(), process.stderr.read()
        assert process.wait() == 130
    assert json.loads(first)["text"] == "my card"
    assert (rest, said) == (b"", b"Interrupted; no file was left half-written.\n")


def test_ctrl_c_leaves_no_file_and_no_process(model_path: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.jsonl", ["my card was charged twice"] * 100)
    output = tmp_path / "out.csv"
    # Standard input stays open, so that there is always more to come.
    process = start("predict", model_path, data, "-", "-o", output, "--workers", "2", start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(b'{"text": "x", "id": 1}\n' * 5000)
    process.stdin.flush()
    until = time.monotonic() + 120
    while not list(tmp_path.glob(".textcls-*")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert said == b"Interrupted; no file was left half-written.\n"
    assert list(tmp_path.iterdir()) == [data]


# Several processes


def test_several_processes_give_the_same_answers_in_the_same_order(model_path: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.jsonl", [f"{'refund ' * (i % 5)}parcel {i}" for i in range(5000)])
    for name, number in (("one.csv", "1"), ("two.csv", "2")):
        process = start("predict", model_path, data, "-o", tmp_path / name, "--workers", number)
        assert process.communicate(timeout=120)[1] == b""
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_a_dead_worker_is_reported_in_one_sentence(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = [TextRow("a", Row(1, {}))]
    monkeypatch.setattr(workers, "_answer", _die)
    with pytest.raises(SurroundingsError, match=r"A worker process died.*use fewer --workers\."):
        list(answered(classifier, [chunk], AnswerColumns(), 2))


def _die(*_: object) -> None:
    os._exit(1)


def test_several_processes_and_line_by_line_do_not_go_together(model_path: Path) -> None:
    result = run("predict", model_path, "-", "-o", "-", "--stream", "--workers", "2", given="text\na\n")
    assert result.exit_code == 2
    assert "use either --stream or --workers" in result.stderr


def test_no_more_chunks_are_read_than_the_workers_are_busy(classifier: Classifier) -> None:
    taken: list[int] = []

    def chunks() -> Any:
        for i in range(20):
            taken.append(i)
            yield [TextRow(f"text {i}", Row(i, {}))]

    for i, (chunk, _) in enumerate(answered(classifier, chunks(), AnswerColumns(), 2)):
        assert chunk[0].row.line == i
        assert len(taken) <= i + 2 * workers.AHEAD
    assert len(taken) == 20


def test_chunks_are_bounded_in_number_and_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls.jobs.batch.chunks.CHARACTERS", 10)
    rows = [TextRow("a" * n, Row(n, {})) for n in (1, 1, 1, 12, 4, 7, 1)]
    assert [[len(item.text) for item in chunk] for chunk in chunked(rows, 2)] == [[1, 1], [1, 12], [4, 7], [1]]


# Memory


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
# A row group of Parquet that is written has up to 16 million characters.
@pytest.mark.parametrize(("suffix", "less", "more"), [(".csv", 8_000, 24_000), (".parquet", 56_000, 96_000)])
def test_memory_does_not_grow_with_the_file(
    model_path: Path, tmp_path: Path, suffix: str, less: int, more: int
) -> None:
    code = """
import sys
from pathlib import Path
from textcls.cli import main
main(sys.argv[1:], standalone_mode=False)
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""
    peaks, data = [], tmp_path / f"new{suffix}"
    for rows in (less, more):
        # What would be kept is long, and what is read of a text is short.
        blank = " " * (1000 if suffix == ".csv" else 1)
        texts = [f"card {i} charged{blank}{i * 7919 % 10_007} times" for i in range(rows)]
        if suffix == ".csv":
            data.write_text("text,more\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))
        else:
            table = pyarrow.table({"text": texts, "more": [text[5:] * 60 for text in texts]})
            pyarrow.parquet.write_table(table, data, row_group_size=2_000)
        call = [sys.executable, "-c", code, "predict", model_path, data, "-o", tmp_path / f"out{suffix}"]
        done = subprocess.run([*map(str, call)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-2]))
    assert peaks[1] < peaks[0] * 1.05 + 8_000


# Ends that are not good


def limited(size: int) -> Callable[[], None]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.csv.gz", "out.parquet"])
def test_a_disk_without_room_is_reported_and_leaves_nothing(model_path: Path, tmp_path: Path, name: str) -> None:
    data = write(tmp_path / "new.jsonl", [f"{i * 7919} parcel {i}" for i in range(2000)])
    # What Python compiles would be cut off, too, and kept so.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = start("predict", model_path, data, "-o", tmp_path / name, preexec_fn=limited(4096), env=environment)
    _, said = process.communicate()
    assert process.returncode == 6
    assert said.decode() == (
        f"Error: {tmp_path / name} cannot be written: File too large; free some space, or choose another output.\n"
    )
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_standard_output_without_room_is_reported(model_path: Path, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start("predict", model_path, write(tmp_path / "new.jsonl", TEXTS), "-o", "-", stdout=full)
        _, said = process.communicate()
    assert process.returncode == 6
    assert said.startswith(b"Error: Standard output cannot be written: No space left on device")
    assert said.count(b"\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_reported(model_path: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.jsonl", TEXTS)
    (tmp_path / "closed").mkdir(mode=0o500)
    result = run("predict", model_path, data, "-o", tmp_path / "closed" / "out.csv")
    assert result.exit_code == 6
    assert "cannot be written to" in result.stderr


def test_a_truncated_model_is_reported(model_path: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(model_path.read_bytes()[:-5000])
    result = run("predict", model, write(tmp_path / "new.jsonl", TEXTS), "-o", tmp_path / "out.csv")
    assert result.exit_code == 4
    assert "it is damaged or not an ONNX file" in result.stderr


def test_a_mistyped_option_is_answered_with_the_one_that_may_be_meant(model_path: Path) -> None:
    result = run("predict", model_path, "new.csv", "--ouput", "out.csv")
    assert result.exit_code == 2
    assert re.search(r"Did you mean .*'--output'", result.stderr)


def test_answers_go_back_into_the_spreadsheet_that_the_rows_came_from(model_path: Path, tmp_path: Path) -> None:
    from openpyxl import Workbook, load_workbook

    book = Workbook()
    sheet = book.active
    for row in (["text", "amount"], ["my card was charged twice", 12.5], ["where is my parcel", 3]):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    assert run("predict", model_path, tmp_path / "a.xlsx", "--output", tmp_path / "b.xlsx").exit_code == 0
    header, first, _ = load_workbook(tmp_path / "b.xlsx").worksheets[0].iter_rows(values_only=True)
    assert header == ("text", "amount", "predicted_label", "score", "decision")
    assert first[:2] == ("my card was charged twice", 12.5)
    assert isinstance(first[3], float)


def test_delimiter_and_encoding_of_the_output_are_those_asked_for(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\ncafé\n", encoding="utf-8")
    german = ("--output-delimiter", "semicolon", "--output-encoding", "utf-8-sig")
    assert run("predict", model_path, tmp_path / "a.csv", "--output", tmp_path / "b.csv", *german).exit_code == 0
    assert (tmp_path / "b.csv").read_bytes().startswith("\ufefftext;predicted_label;score;decision\ncafé;".encode())


@pytest.mark.parametrize(
    ("options", "name", "said"),
    [
        (("--output-encoding", "latin-1"), "b.csv", "'☃' cannot be written in latin-1; write UTF-8"),
        (("--output-encoding", "klingon"), "b.csv", "Unknown encoding 'klingon'"),
        (("--output-encoding", "cp1252"), "b.jsonl", "--output-encoding applies to CSV and TSV"),
        (("--output-delimiter", "tab"), "b.xlsx", "--output-delimiter applies to CSV and TSV"),
        (("--sheet", "one"), "b.csv", "is read as csv, which has no sheets; leave --sheet out"),
    ],
)
def test_what_does_not_go_with_the_output_is_told_and_no_file_is_left(
    model_path: Path, tmp_path: Path, options: tuple[str, ...], name: str, said: str
) -> None:
    (tmp_path / "a.csv").write_text("text\n☃\n", encoding="utf-8")
    done = run("predict", model_path, tmp_path / "a.csv", "--output", tmp_path / name, *options)
    assert done.exit_code != 0
    assert said in done.stderr
    assert not (tmp_path / name).exists()
