"""The installed program, in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import TEXTS
from tests.command_line import SCRIPT, program, read_rows, write_rows

NOTE = "Note: 1 text is empty.\nNote: 1 text is longer than the 64 tokens that the model reads; the rest is not read.\n"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "textcls", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("textcls, version ")


def test_the_installed_program_predicts(model_path: Path, table: Path, tmp_path: Path) -> None:
    done = program("predict", model_path, "new.csv", "--output", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(TEXTS)} rows -> out.csv\n", NOTE)
    assert [row["text"] for row in read_rows(tmp_path / "out.csv")] == list(TEXTS)


def test_the_installed_program_explains_without_colours_when_piped(model_path: Path, tmp_path: Path) -> None:
    done = program("explain", model_path, TEXTS[4], folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(TEXTS[4] + "\n")
    assert "\x1b" not in done.stdout


def test_the_installed_program_ends_with_the_code_of_the_error_and_one_line(model_path: Path, tmp_path: Path) -> None:
    done = program("predict", model_path, "no.csv", "--output", "out.csv", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "Error: There is no file no.csv.\n")
    assert list(tmp_path.iterdir()) == []


def test_the_installed_program_trains_with_its_progress_on_standard_error(tmp_path: Path) -> None:
    rows = [(f"{word} please {i}", word) for word in ("refund", "parcel") for i in range(8)]
    write_rows(tmp_path / "data.csv", [("text", "label"), *rows])
    done = program("train", "data.csv", "--dim", "2", "--epochs", "1", folder=tmp_path)
    assert done.returncode == 0
    # On a machine that has not trained before, a line tells that loops are compiled.
    lines = [line for line in done.stderr.splitlines() if "Compiling the training loops for this machine" not in line]
    assert {line.split(":")[0].split(" ")[0] for line in lines} == {"Some", "choosing"}
    assert "choosing" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("data.onnx, ")
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "data.onnx"}


def test_a_reader_that_stops_reading_ends_the_program_without_a_traceback(model_path: Path) -> None:
    line = f"{SCRIPT} inspect {model_path} --json"
    done = subprocess.run(
        ["sh", "-c", f"{line} | true; {line} > /dev/full"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


def test_a_defect_that_nobody_catches_shows_its_traceback_and_ends_with_1() -> None:
    code = "import textcls.__main__ as program\ndef main(prog_name): 1 / 0\nprogram.main = main\nprogram.run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_exit_handlers_run_before_the_program_ends_at_once() -> None:
    code = (
        "import atexit, textcls.__main__ as program\n"
        "def main(prog_name):\n    atexit.register(print, 'handled')\n    raise SystemExit(7)\n"
        "program.main = main\nprogram.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "handled\n")


def test_an_output_that_takes_nothing_is_one_sentence_whatever_was_said_and_however_it_is_buffered(
    model_path: Path,
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for environment in (buffered, {**buffered, "PYTHONUNBUFFERED": "1"}):
        for given in (
            ["--help"],
            ["explain", str(model_path), "hello"],
            ["explain", str(model_path), "hello", "--json"],
        ):
            with Path("/dev/full").open("w") as full:
                done = subprocess.run(
                    [SCRIPT, *given], env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
                )
            assert (done.returncode, done.stderr) == (6, "Error: Output: No space left on device.\n")


def test_a_command_whose_reader_has_gone_says_nothing_and_ends_as_shells_know_it(model_path: Path) -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    for given in (["explain", str(model_path), "hello"], ["explain", str(model_path), "hello", "--json"]):
        done = subprocess.run([SCRIPT, *given], stdout=ours, stderr=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stderr) == (141, "")
    os.close(ours)


def test_who_has_closed_standard_output_gets_the_work_done(model_path: Path, table: Path, tmp_path: Path) -> None:
    command = f"'{SCRIPT}' predict '{model_path}' '{table}' --output out.csv >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, NOTE)
    assert (tmp_path / "out.csv").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_where_not_even_the_error_can_be_said_the_exit_code_says_it() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([SCRIPT, "inspect", "--help"], stdout=full, stderr=full, check=False)
    assert done.returncode == 6


def test_a_working_folder_that_has_gone_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    line = f"rmdir {folder} && {SCRIPT} demo"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (6, "Error: The working folder: No such file or directory.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_a_command_leaves_no_half_written_file(model_path: Path, tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)

    def heed() -> None:
        """Tests may run under nohup, which has all that they start ignore a signal."""
        signal.signal(number, signal.SIG_DFL)

    line: list[str | Path] = [SCRIPT, "predict", model_path, "-", "--format", "lines", "-o", "out.csv"]
    quiet = subprocess.DEVNULL
    with (
        subprocess.Popen(["yes", "where is my parcel"], stdout=subprocess.PIPE, stderr=quiet) as endless,
        subprocess.Popen(line, cwd=tmp_path, stdin=endless.stdout, stderr=quiet, preexec_fn=heed) as process,
    ):
        while process.poll() is None and not list(tmp_path.iterdir()):
            time.sleep(0.01)
        process.send_signal(number)
        process.wait()
        endless.kill()
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_signal_that_a_library_takes_for_an_error_of_its_own_ends_the_program_all_the_same() -> None:
    code = (
        "import os, signal, textcls.__main__ as program\n"
        "def main(prog_name):\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except SystemExit as error:\n        raise ImportError('initialization failed') from error\n"
        "program.main = main\nprogram.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "")


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ("onnxruntime.InferenceSession", "RuntimeError('initialization: std::bad_alloc')", "to load {}"),
        (
            "onnxruntime.InferenceSession",
            "RuntimeError('Failed to allocate memory for a buffer')",
            "to load {}",
        ),
        ("onnxruntime.InferenceSession", "MemoryError", "to load {}"),
        ("textcls.model.graph.foreign", "MemoryError('8 GB are needed.')", "here: 8 GB are needed"),
    ],
)
def test_memory_that_runs_out_is_one_sentence(model_path: Path, place: str, error: str, said: str) -> None:
    code = (
        "import onnxruntime, textcls.model.graph, textcls.__main__ as program\n"
        f"def lacking(*_, **__):\n    raise {error}\n"
        f"{place} = lacking\nprogram.run()"
    )
    line: list[str | Path] = [sys.executable, "-c", code, "explain", model_path, "some text"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (6, f"Error: There is not enough memory {said.format(model_path)}.\n")
