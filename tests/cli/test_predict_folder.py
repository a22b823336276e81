"""`textcls predict` into a folder: a file of answers for each input, as one alone would be, and none twice."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tests.command_line import fail, run, succeed
from textcls.display.terminal.answering import sentence
from textcls.errors import InputError, SurroundingsError
from textcls.jobs.batch.folder import MANIFEST, Answering, FileAnswered, FileJob, Standing, answers_name
from textcls.model.classifier import Classifier

TEXTS = ["my card was charged twice", "where is my parcel", "refund please", "", "\u6ce8\u6587"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of three tables in three formats, packed and not."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("id,text\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)))
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    table = pyarrow.table({"id": list(range(500)), "text": TEXTS * 100})
    pyarrow.parquet.write_table(table, folder / "c.parquet")
    return folder


def hashes(folder: Path) -> dict[str, str]:
    """The content of all files in a folder, by a hash; the manifest holds no answers."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


# What is written


def test_each_file_is_answered_into_one_of_its_name_as_it_would_be_alone(
    model_path: Path, tmp_path: Path, data: Path
) -> None:
    output, alone = tmp_path / "out", tmp_path / "alone"
    alone.mkdir()
    said = succeed("predict", model_path, data, "-o", f"{output}/", "--explain", "--quiet")
    assert said == f"510 rows in 3 files -> {output}/\n"
    for path in data.iterdir():
        succeed("predict", model_path, path, "-o", alone / path.name, "--explain")
    assert hashes(output) == hashes(alone)


def test_several_processes_write_the_same_files(model_path: Path, tmp_path: Path, data: Path) -> None:
    for workers in (1, 2):
        succeed("predict", model_path, data, "-o", f"{tmp_path / str(workers)}/", "--workers", str(workers))
    assert hashes(tmp_path / "1") == hashes(tmp_path / "2")


def test_a_pattern_keeps_the_folders_below_its_fixed_part(model_path: Path, tmp_path: Path, data: Path) -> None:
    for day in ("monday", "tuesday"):
        shutil.copytree(data, tmp_path / "days" / day)
    succeed("predict", model_path, f"{tmp_path}/days/*/*.csv", "-o", f"{tmp_path}/out/")
    assert sorted(hashes(tmp_path / "out")) == ["monday/a.csv", "tuesday/a.csv"]


def test_urls_are_read_and_written_as_files_are(model_path: Path, tmp_path: Path, data: Path) -> None:
    succeed("predict", model_path, data, "-o", f"{tmp_path}/out/")
    (data / "a.csv").rename(data / "a b.csv")
    succeed("predict", model_path, f"file://{data}/*", "-o", f"file://{tmp_path}/remote/")
    shutil.move(tmp_path / "remote" / "a b.csv", tmp_path / "remote" / "a.csv")
    assert hashes(tmp_path / "remote") == hashes(tmp_path / "out")


@pytest.mark.parametrize(
    ("inside", "asked", "name"),
    [
        ("day/a.csv.gz", None, "day/a.csv.gz"),
        ("a.csv.gz", "jsonl", "a.jsonl.gz"),
        ("a.parquet", "csv", "a.csv"),
        ("a.txt", None, "a.csv"),
        ("a.json", None, "a.jsonl"),
        ("a.feather", None, "a.parquet"),
        ("part-0.5", None, "part-0.5.csv"),
    ],
)
def test_answers_are_called_as_their_input(inside: str, asked: str | None, name: str) -> None:
    assert answers_name(inside, asked) == name  # type: ignore[arg-type]


# Once


def test_what_is_there_is_kept_and_what_is_missing_is_answered(model_path: Path, tmp_path: Path, data: Path) -> None:
    output = tmp_path / "out"
    call = ("predict", model_path, data, "-o", f"{output}/")
    succeed(*call)
    before = hashes(output)
    kept = (output / "a.csv").stat().st_mtime_ns
    (output / "b.jsonl").unlink()
    assert succeed(*call) == f"5 rows in 1 file -> {output}/; 2 files had answers before\n"
    assert hashes(output) == before
    assert (output / "a.csv").stat().st_mtime_ns == kept


def test_a_file_that_has_changed_since_is_answered_anew(model_path: Path, tmp_path: Path, data: Path) -> None:
    output = tmp_path / "out"
    succeed("predict", model_path, data, "-o", f"{output}/")
    (data / "a.csv").write_text("text\nmy card\n")
    os.utime(data / "a.csv", (2**31, 2**31))
    assert succeed("predict", model_path, data, "-o", f"{output}/").startswith("1 row in 1 file")


def test_a_file_in_the_place_of_another_is_answered_anew_even_if_it_is_older(
    model_path: Path, tmp_path: Path, data: Path
) -> None:
    call = ("predict", model_path, data, "-o", f"{tmp_path}/out/")
    succeed(*call)
    (data / "a.csv").write_text("text\nmy card\n")
    os.utime(data / "a.csv", (1000, 1000))
    assert succeed(*call).startswith("1 row in 1 file")
    assert succeed(*call).startswith("0 rows in 0 files")


def test_a_file_that_is_replaced_while_it_is_answered_is_answered_again(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Answering._answer

    def and_replaced(work: Answering, classifier: Classifier, job: FileJob) -> FileAnswered:
        found = answer(work, classifier, job)
        (data / "a.csv").write_text("text\nmy card\n")
        return found

    call = ("predict", model_path, data / "a.csv", "-o", f"{tmp_path}/out/")
    with monkeypatch.context() as once:
        once.setattr(Answering, "_answer", and_replaced)
        assert succeed(*call).startswith("5 rows")
    assert succeed(*call).startswith("1 row")


def test_a_run_that_ends_in_the_middle_keeps_no_answers_to_what_files_were_before(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("predict", model_path, data / "a.csv", "-o", f"{tmp_path}/out/")
    succeed(*call)
    first, about = (data / "a.csv").read_bytes(), (data / "a.csv").stat()
    (data / "a.csv").write_text("text\nmy card\n")

    def no_room(*_: object) -> None:
        raise SurroundingsError("No space left on device.")

    with monkeypatch.context() as full:
        full.setattr(Answering, "_answer", no_room)
        assert run(*call).exit_code == 6
    (data / "a.csv").write_bytes(first)
    os.utime(data / "a.csv", ns=(about.st_mtime_ns, about.st_mtime_ns))
    assert succeed(*call).startswith("5 rows in 1 file")


def test_folders_that_were_moved_are_not_answered_again(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed("predict", model_path, data, "-o", f"{tmp_path}/out/")
    moved = data.rename(tmp_path / "moved")
    assert succeed("predict", model_path, moved, "-o", f"{tmp_path}/out/").startswith("0 rows in 0 files")
    (moved / "a.csv").write_text("text\nmy card\n")
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path / "beside")
    assert succeed("predict", model_path, "../moved", "-o", "../out/").startswith("1 row in 1 file")


def test_what_another_run_writes_down_meanwhile_stays(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, calls = Answering._answer, [data / "a.csv", data / "b.jsonl"]

    def and_another(work: Answering, classifier: Classifier, job: FileJob) -> FileAnswered:
        if calls:
            succeed("predict", model_path, calls.pop(), "-o", f"{tmp_path}/out/")
        return answer(work, classifier, job)

    monkeypatch.setattr(Answering, "_answer", and_another)
    succeed("predict", model_path, data / "c.parquet", "-o", f"{tmp_path}/out/")
    assert succeed("predict", model_path, data, "-o", f"{tmp_path}/out/").startswith("0 rows in 0 files")


def test_what_a_killed_worker_left_goes_once_nobody_writes_to_it(model_path: Path, tmp_path: Path, data: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    old, fresh = output / ".textcls-0123", output / ".textcls-4567"
    old.touch()
    fresh.touch()
    os.utime(old, (0, 0))
    succeed("predict", model_path, data, "-o", f"{output}/")
    assert (old.exists(), fresh.exists()) == (False, True)


# What is refused


def test_answers_of_another_model_or_of_other_options_do_not_go_into_the_same_folder(
    model_path: Path, several_labels_path: Path, tmp_path: Path, data: Path
) -> None:
    output = f"{tmp_path}/out/"
    succeed("predict", model_path, data, "-o", output)
    before = hashes(tmp_path / "out")
    assert "it differs in model_sha256" in fail(2, "predict", several_labels_path, data, "-o", output)
    assert "it differs in answer" in fail(2, "predict", model_path, data, "-o", output, "--explain")
    assert hashes(tmp_path / "out") == before


def test_answers_to_another_file_of_the_same_name_stay(model_path: Path, tmp_path: Path, data: Path) -> None:
    succeed("predict", model_path, data, "-o", f"{tmp_path}/out/")
    before = hashes(tmp_path / "out")
    (tmp_path / "other").mkdir()
    first = (data / "a.csv").stat()
    (tmp_path / "other" / "a.csv").write_text("text\nmy card\n".ljust(first.st_size))
    os.utime(tmp_path / "other" / "a.csv", ns=(first.st_mtime_ns, first.st_mtime_ns))  # as archives may write them
    said = fail(2, "predict", model_path, tmp_path / "other", "-o", f"{tmp_path}/out/")
    assert f"a.csv holds the answers to {data / 'a.csv'}, and not to {tmp_path / 'other' / 'a.csv'}; choose" in said
    assert hashes(tmp_path / "out") == before


def test_files_that_were_never_answers_are_not_taken_for_such(model_path: Path, tmp_path: Path, data: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.csv").write_text("mine")
    assert "holds answers of another run" in fail(2, "predict", model_path, data, "-o", f"{tmp_path}/out/")
    assert (tmp_path / "out" / "a.csv").read_text() == "mine"


def test_answers_do_not_take_the_place_of_their_input(model_path: Path, data: Path) -> None:
    before = hashes(data)
    assert "would take its place" in fail(3, "predict", model_path, data, "-o", data)
    assert hashes(data) == before


def test_two_inputs_of_one_name_are_refused_before_any_work(model_path: Path, tmp_path: Path, data: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(data, other)
    said = fail(3, "predict", model_path, data / "a.csv", other / "a.csv", "-o", f"{tmp_path}/out/")
    assert "would both be called a.csv" in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-o", "{out}/", "--stream"), "not into a folder"),
        (("-o", "{out}.csv", "--engine", "ray"), "end it in /"),
    ],
)
def test_what_does_not_go_with_a_folder_is_told(
    model_path: Path, tmp_path: Path, data: Path, arguments: tuple[str, ...], says: str
) -> None:
    given = [argument.format(out=tmp_path / "out") for argument in arguments]
    assert says in fail(2, "predict", model_path, data, *given)
    assert not (tmp_path / "out").exists()


def test_a_pattern_of_no_file_is_told(model_path: Path, tmp_path: Path) -> None:
    for name in (f"{tmp_path}/*.csv", f"file://{tmp_path}/*.csv"):
        assert "No file matches" in fail(3, "predict", model_path, name, "-o", f"{tmp_path}/out/")


def test_without_ray_its_engine_tells_what_to_install_and_makes_no_folder(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    said = fail(5, "predict", model_path, data, "-o", tmp_path / "out", "--engine", "ray")
    assert said.endswith("'ray', which is not installed (about 420 MB); run: pip install \"textcls[ray]\"\n")
    assert not (tmp_path / "out").exists()


# What goes wrong with one file


def test_a_damaged_file_is_told_and_all_others_are_answered(model_path: Path, tmp_path: Path, data: Path) -> None:
    whole = (data / "c.parquet").read_bytes()
    (data / "c.parquet").write_bytes(whole[:-100])
    call = ("predict", model_path, data, "-o", f"{tmp_path}/out/")
    result = run(*call, "--quiet")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == (
        f"Error: 1 of 3 files was not answered: {data}/c.parquet is not a Parquet file, or it is damaged or cut off; "
        f"copy or write it again. The others are in {tmp_path}/out/; correct it and type the same again.\n"
    )
    assert sorted(hashes(tmp_path / "out")) == ["a.csv", "b.jsonl"]
    (data / "c.parquet").write_bytes(whole)
    assert "500 rows in 1 file" in succeed(*call)


@pytest.mark.parametrize("where", ["", "file://"])
def test_a_damaged_row_fails_its_file_or_is_skipped_and_told(
    model_path: Path, tmp_path: Path, data: Path, where: str
) -> None:
    with (data / "b.jsonl").open("a") as file:
        file.write('{"text": 5}\n')
    name = f"{data}/b.jsonl"
    assert f"{name}, line 6" in fail(3, "predict", model_path, f"{where}{name}", "-o", f"{tmp_path}/out/", "--quiet")
    result = run("predict", model_path, f"{where}{name}", "-o", f"{tmp_path}/out2/", "--on-error", "skip", "--quiet")
    assert (result.exit_code, result.stdout) == (0, f"5 rows in 1 file -> {tmp_path}/out2/\n")


def test_a_full_disk_ends_the_run_since_all_that_follow_would_fail(
    model_path: Path, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("textcls.data.parquet.Writer.close", full)
    said = fail(6, "predict", model_path, data, "-o", f"{tmp_path}/out/", "--quiet")
    assert said.endswith(
        "c.parquet cannot be written: No space left on device; free some space, or choose another output.\n"
    )
    assert list(hashes(tmp_path / "out")) == []


def test_a_model_that_cannot_be_loaded_is_told_before_the_folder_is_made(tmp_path: Path, data: Path) -> None:
    assert "There is no model file" in fail(4, "predict", tmp_path / "no.onnx", data, "-o", f"{tmp_path}/out/")
    assert not (tmp_path / "out").exists()


# What is told meanwhile


def test_the_standing_tells_pace_time_left_and_failures() -> None:
    standing = Standing(files=4, bytes=4000, kept=1, done=1, rows=12_000, done_bytes=2000, seconds=600.0)
    assert sentence(standing) == "1 of 4 files, 12,000 rows, 20 rows/s, 10 min left"
    standing.failed.append(("b.csv", InputError("b.csv is damaged.")))
    assert sentence(standing).endswith("2 of 4 files, 12,000 rows, 20 rows/s, 10 min left, 1 failed"[-30:])


def test_before_the_first_file_nothing_is_said_of_the_time_left() -> None:
    assert sentence(Standing(files=4, bytes=4000, kept=0)) == "0 of 4 files, 0 rows, 0 rows/s"
