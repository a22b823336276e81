"""The file of answers: what is confirmed is on disk, whatever happens."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.labelling.files import Open
from textcls._util.file_lock import try_lock
from textcls.data import TargetOptions, read_label_sets, read_labelled
from textcls.errors import InputError, SurroundingsError
from textcls.labelling import answers
from textcls.labelling.answers import Annotation, AnnotationsFile

WRITER = """
import sys
from pathlib import Path
from textcls.labelling.answers import Annotation, AnnotationsFile
file = AnnotationsFile(Path(sys.argv[1]), several=False)
for i in range(10**6):
    file.append(Annotation(f"text {i} " + "x" * 300, ("label",), i))
    print(i, flush=True)
    if i % 7 == 6:
        file.exchange(file.answers[:-1])
        print("undone", flush=True)
"""


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Let no file have more bytes than that."""
    limits, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_kill_loses_no_confirmed_answer(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline().strip() for _ in range(60)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.read().split()
    expected = [int(word) for word in said if word != "undone" and int(word) % 7 != 6]
    file = opened(path, several=False)
    rows = [answer.row for answer in file.answers]
    assert rows[: len(expected)] == expected
    # What was being written when the kill came may be there as well.
    assert len(rows) <= len(expected) + 2
    file.append(Annotation("after the kill", ("label",)))
    assert lines(path)[-1] == {"text": "after the kill", "label": "label"}


def test_a_line_that_was_cut_off_is_removed_and_the_next_answer_stands_on_its_own(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"text": "a", "label": "x"}\n{"text": "b", "la', encoding="utf-8")
    file = opened(path, several=False)
    file.append(Annotation("c", ("y",), 2, "model", "Ann"))
    assert lines(path) == [
        {"text": "a", "label": "x"},
        {"text": "c", "label": "y", "row": 3, "chosen": "model", "by": "Ann"},
    ]


def test_a_last_line_without_an_end_is_kept_if_it_is_whole(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"text": "a", "label": "x"}', encoding="utf-8")
    file = opened(path, several=False)
    file.append(Annotation("b", ("y",)))
    assert [line["text"] for line in lines(path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\x08\x0a\x12\x00model\n\xff\xfe", 1),
        (b"text,label\nfoo,a\nbar,b", 1),
        (b'{"text": "foo", "label": ["a"]}\n{"text": "bar", "label": ["b"]}', 1),
        (b'{"text": "foo", "label": "a"}\n{"text": "bar", "label": 1}', 2),
        (b'[{"text": "foo", "label": "a"}]', 1),
        (b'{"text": "foo", "label": "a"}\nno answer', 2),
        (b'text,label\nfoo,a\n{"text": "torn', 1),
    ],
)
def test_a_file_of_something_else_stays_as_it_was(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"mine, line {line}, is not an answer: "):
        AnnotationsFile(path, several=False)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("content", "there"), [(b"", False), (b"\n\n", True)])
def test_only_an_empty_file_is_removed_at_the_end(tmp_path: Path, content: bytes, there: bool) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_bytes(content)
    AnnotationsFile(path, several=False).close()
    assert path.exists() == there


def test_what_another_program_writes_meanwhile_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    file = AnnotationsFile(path, several=False)
    path.write_text("theirs")
    file.close()
    assert path.read_text() == "theirs"


def test_two_processes_do_not_write_one_file_even_after_an_answer_was_taken_back(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    file = opened(path, several=False)
    with pytest.raises(SurroundingsError, match="Another process is labelling into"):
        AnnotationsFile(path, several=False)
    file.append(Annotation("a", ("x",)))
    file.exchange([])
    with pytest.raises(SurroundingsError, match="Another process is labelling into"):
        AnnotationsFile(path, several=False)
    file.close()
    assert opened(path, several=False).answers == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[1]", "it is not an object with a text"),
        ('{"text": "a"}', "its label is not one label, a string"),
        ('{"text": "a", "label": ["x"]}', "its label is not one label, a string"),
        ('{"text": "a", "label": ""}', "'' cannot be a label"),
        ("text,label", "it is not JSON"),
    ],
)
def test_another_file_is_not_written_into(tmp_path: Path, opened: Open, line: str, why: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(f'{{"text": "a", "label": "x"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2, is not an answer: ") as error:
        AnnotationsFile(path, several=False)
    assert why in str(error.value)
    assert path.read_text(encoding="utf-8").endswith(f"{line}\n")


def test_an_answer_that_could_not_be_written_is_not_in_the_file(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    file = opened(path, several=False)
    file.append(Annotation("a", ("x",)))
    before = path.read_bytes()
    with limited(len(before) + 20), pytest.raises(SurroundingsError, match="this answer was not saved"):
        file.append(Annotation("b" * 100, ("x",)))
    assert path.read_bytes() == before
    file.append(Annotation("c", ("x",)))
    assert [line["text"] for line in lines(path)] == ["a", "c"]


@pytest.mark.parametrize("several", [False, True])
def test_training_reads_the_file(tmp_path: Path, opened: Open, several: bool) -> None:
    path = tmp_path / "labels.jsonl"
    file = opened(path, several=several)
    for i in range(12):
        label = ("billing", "returns")[i % 2]
        file.append(
            Annotation(f'{label} text {i} \ud800\n"', (label, "all") if several and i else (label,), i, "model")
        )
    if several:
        found = read_label_sets(path, targets=TargetOptions())
        assert found.labels[1] == {"returns": 1.0, "all": 1.0}
    else:
        assert read_labelled(path).labels[:2] == ["billing", "returns"]


@pytest.mark.parametrize("emptied", [False, True])
def test_who_gets_the_file_while_another_replaces_or_removes_it_writes_where_it_is_read(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, emptied: bool
) -> None:
    path = tmp_path / "labels.jsonl"
    first = opened(path, several=False)
    for text in ("a", "b"):
        first.append(Annotation(text, ("x",)))

    def late(file: int) -> bool:
        """The second has opened the file, and not locked it yet."""
        monkeypatch.setattr(answers, "try_lock", try_lock)
        first.exchange([] if emptied else first.answers[:1])
        first.close()
        return try_lock(file)

    monkeypatch.setattr(answers, "try_lock", late)
    second = opened(path, several=False)
    second.append(Annotation("c", ("x",)))
    found = ["c"] if emptied else ["a", "c"]
    assert [answer.text for answer in second.answers] == found
    assert [line["text"] for line in lines(path)] == found


def test_an_answer_that_fails_after_answers_were_replaced_leaves_no_gap(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "labels.jsonl"
    file = opened(path, several=False)
    file.append(Annotation("a", ("x",)))
    file.exchange(file.answers)
    with limited(path.stat().st_size + 20), pytest.raises(SurroundingsError, match="this answer was not saved"):
        file.append(Annotation("b" * 100, ("x",)))
    file.append(Annotation("c", ("x",)))
    assert [line["text"] for line in lines(path)] == ["a", "c"]
    with pytest.raises(SurroundingsError, match="Another process is labelling"):
        AnnotationsFile(path, several=False)


@pytest.mark.parametrize("how", ["replaced", "moved", "longer", "as long"])
def test_a_file_that_another_program_has_changed_is_not_written(tmp_path: Path, opened: Open, how: str) -> None:
    path, other = tmp_path / "labels.jsonl", tmp_path / "other"
    file = opened(path, several=False)
    for text in ("a", "b"):
        file.append(Annotation(text, ("x",)))
    if how == "as long":
        with path.open("r+b") as foreign:
            foreign.write(path.read_bytes().replace(b'"a"', b'"A"'))
    elif how == "longer":
        with path.open("a") as foreign:
            foreign.write('{"text": "theirs", "label": "x"}\n')
    else:
        path.rename(other)
        if how == "replaced":
            path.write_bytes(other.read_bytes().replace(b'"a"', b'"A"'))
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(SurroundingsError, match="was changed, moved or removed by another program; nothing was saved"):
        file.append(Annotation("c", ("x",)))
    with pytest.raises(SurroundingsError, match="nothing was saved"):
        file.exchange(file.answers[:1])
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(file.answers) == 2


def test_an_exchange_that_failed_leaves_a_file_that_takes_answers_again(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "folder" / "labels.jsonl"
    path.parent.mkdir()
    file = opened(path, several=False)
    for text in ("a", "b"):
        file.append(Annotation(text, ("x",)))
    # Between the look at the file and its exchange the folder goes away.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_check_ours", lambda: path.parent.rename(tmp_path / "gone"))
        with pytest.raises(SurroundingsError):
            file.exchange(file.answers[:1])
    with pytest.raises(SurroundingsError):
        file.append(Annotation("c", ("x",)))
    (tmp_path / "gone").rename(path.parent)
    file.append(Annotation("c", ("x",)))
    assert [line["text"] for line in lines(path)] == ["a", "b", "c"]
