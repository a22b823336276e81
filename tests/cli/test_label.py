"""`textcls label`: what it refuses before a page is there. The page itself: tests/web/test_label_page.py."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.command_line import SCRIPT, fail, heed_ctrl_c, run, write_rows
from textcls.cli.label import _begin, _of_rows
from textcls.cli.reading import Reading
from textcls.data.rows import BadRows, ReadOptions
from textcls.data.targets import TargetOptions
from textcls.errors import InputError
from textcls.labelling.answers import Annotation, AnnotationsFile


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "texts.csv", [["text"], ["one"], ["two"]])


def test_at_least_two_labels_are_needed(texts: Path) -> None:
    assert "Name at least two labels" in fail(2, "label", texts)
    assert "Name at least two labels" in fail(2, "label", texts, "--labels", "only")
    assert [path.name for path in texts.parent.iterdir()] == ["texts.csv"]


def test_options_that_do_not_go_together_are_refused(texts: Path) -> None:
    assert "--label-separator needs --suspects" in fail(2, "label", texts, "--labels", "a,b", "--label-separator", ";")
    assert "--label-column needs --suspects" in fail(2, "label", texts, "--labels", "a,b", "--label-column", "x")
    assert "--label-columns brings answers" in fail(2, "label", texts, "--suspects", "--label-columns", "p_*")
    assert "has no column that --label-columns p_* names" in fail(3, "label", texts, "--label-columns", "p_*")
    assert "two labels have the same name" in run("label", texts, "--labels", "a,a").stderr


def test_answers_never_go_into_the_texts_nor_into_another_file(texts: Path, tmp_path: Path) -> None:
    assert "also the input" in fail(3, "label", texts, "--labels", "a,b", "-o", texts)
    other = write_rows(tmp_path / "other.jsonl", [["text", "label"], ["a", "b"]])
    for name in ("labels.csv", "labels.xlsx", "labels.jsonl.gz"):
        said = fail(2, "label", texts, "--labels", "a,b", "-o", tmp_path / name)
        assert f"Answers are written as JSON lines: name the --output {tmp_path / 'labels.jsonl'}.\n" in said
    assert "is not an answer" in fail(3, "label", texts, "--labels", "a,b", "-o", other)
    assert "has no rows" in fail(3, "label", write_rows(tmp_path / "empty.csv", [["text"]]), "--labels", "a,b")


@contextmanager
def labelling(texts: Path, end: signal.Signals) -> Iterator[str]:
    """The address of a page, of a program that is ended by a signal."""
    command: list[str | Path] = [SCRIPT, "label", texts, "--labels", "a,b", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            process.send_signal(end)
            process.communicate(timeout=60)


def ask(address: str, what: str, **given: object) -> Any:
    """What the program answers to a request of its page."""
    base, _, token = address.partition("#")
    body = json.dumps({"who": "me", **given}).encode()
    with urlopen(Request(f"{base}api/{what}", body, {"x-textcls-token": token}), timeout=60) as reply:
        return json.load(reply)


def test_a_kill_loses_no_confirmed_answer_and_the_same_call_goes_on(tmp_path: Path) -> None:
    texts = write_rows(tmp_path / "texts.2026.csv", [["text"], *([f"text {i}"] for i in range(30))])
    confirmed = []
    with labelling(texts, signal.SIGKILL) as address:
        shown = ask(address, "next")["text"]
        for i in range(12):
            label = "ab"[i % 2]
            following = ask(address, "answer", row=shown["row"], labels=[label])["text"]
            confirmed.append((shown["text"], label))
            shown = following
    lines = (tmp_path / "texts.2026.labels.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(line["text"], line["label"]) for line in map(json.loads, lines)] == confirmed
    with labelling(texts, signal.SIGINT) as address:
        found = ask(address, "next")
        assert (found["state"]["answers"], found["state"]["left"]) == (12, 18)
        assert found["text"]["text"] not in dict(confirmed)


def test_columns_that_answers_have_themselves_are_told_to_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "rows.csv", [["body", "queue", "by", "row"], ["a", "x", "Ann", "R-0"]])
    _of_rows(path, ["body"], "queue", TargetOptions(), Reading(ReadOptions(), BadRows(), quiet=False))
    assert "columns of its own called 'by' and 'row', so what the file says there is" in capsys.readouterr().err
    path = write_rows(tmp_path / "made.csv", [["text", "label", "row", "chosen"], ["a", "x", "1", "given"]])
    _of_rows(path, ["text"], "label", TargetOptions(), Reading(ReadOptions(), BadRows(), quiet=False))
    assert capsys.readouterr().err == ""


def test_the_levels_of_a_label_are_not_kept_beside_what_it_is_corrected_to(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.csv", [["text", "group", "job", "id"], ["a", "x", "y", "7"]])
    work = _of_rows(path, ["text"], "group > job", TargetOptions(), Reading(ReadOptions(), BadRows(), quiet=False))
    (came,) = work.as_they_came
    assert (came.labels, came.beside) == (("x > y",), {"id": "7"})


def test_rows_without_a_text_are_nothing_to_label(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.csv", [["text"], [""], [" "]])
    done = run("label", path, "--labels", "a,b", "--port", "0")
    assert done.exit_code == 3
    assert done.stderr.splitlines()[-1] == f"Error: {path} has no text to label: 2 rows, all without one."


def test_suspects_go_on_with_the_rows_that_there_are(tmp_path: Path) -> None:
    file = AnnotationsFile(tmp_path / "labels.jsonl", several=False)
    rows = [Annotation(text, ("x",), i, "given", beside={"id": i}) for i, text in enumerate("abc")]
    with closing(file):
        _begin(file, rows)
        file.exchange([replace(rows[0], labels=("y",), chosen="suspect"), *rows[1:]])
        _begin(file, rows)
        others = [replace(rows[1], labels=("z",)), replace(rows[1], text="B"), replace(rows[1], beside={})]
        for now in (rows[:2], [*rows, replace(rows[0], row=3)], *([rows[0], other, rows[2]] for other in others)):
            with pytest.raises(InputError, match="was made of other rows than DATA has now"):
                _begin(file, now)
