"""The way from a table to a service, on Windows, or where Python is as textcls would find it there.

What textcls imports and asks of the system is what there is on Windows; see `windows/sitecustomize.py` for what that
holds. Output goes to a pipe in code page 437. Nothing else of the tests is needed.
"""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

Shown = subprocess.CompletedProcess[str]
Call = Callable[..., Shown]
_ON_WINDOWS = sys.platform == "win32"
_THERE = {"PYTHONIOENCODING": "cp437", "PYTHONUTF8": "0"}
if not _ON_WINDOWS:
    _THERE["PYTHONPATH"] = str(Path(__file__).parent / "windows")


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "textcls", *arguments]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two tables, one of few rows, and a model that was trained there."""
    place = tmp_path_factory.mktemp("windows")
    _call(place, "demo")
    with (place / "support_tickets.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    with (place / "few.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows[::14]])
    training = ("--output", "tickets.onnx", "--state", "state", "--keep-words", "--epochs", "5")
    _call(place, "train", "support_tickets.csv", *training)
    return place


@pytest.fixture
def call(folder: Path) -> Call:
    """Calls textcls in that folder; the command must succeed unless another exit code is said."""
    return lambda *arguments, code=0: _call(folder, *arguments, code=code)


def _call(folder: Path, *arguments: str, code: int = 0) -> Shown:
    found = subprocess.run(
        _command(arguments), cwd=folder, env={**os.environ, **_THERE}, capture_output=True, text=True,
        encoding="cp437", check=False,
    )  # fmt: skip
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    return found


# One process makes many calls, which imports but once what they share.
_ONE_BY_ONE = """
import json, sys
from textcls.cli import main
sys.stdout.reconfigure(errors="backslashreplace")  # as the program does
for call in json.loads(sys.argv[1]):
    print("--", *call, flush=True)
    main(call, standalone_mode=False)
"""


def _all_called(folder: Path, calls: Sequence[Sequence[str]]) -> list[str]:
    """What each call prints, all of which must succeed."""
    found = subprocess.run(
        [sys.executable, "-c", _ONE_BY_ONE, json.dumps(calls)], cwd=folder, env={**os.environ, **_THERE},
        capture_output=True, text=True, encoding="cp437", check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    said = [found.stdout.partition(f"-- {' '.join(call)}\n")[2].partition("\n-- ")[0] for call in calls]
    assert found.stdout.count("-- ") >= len(calls)
    return said


# Calls that are refused need no process each.
_REFUSED = """
import json, sys
from click.testing import CliRunner
from textcls.cli import main
for call in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, call)
    print(json.dumps([done.exit_code, done.stderr]))
"""


def _said_of(folder: Path, code: int, calls: Sequence[Sequence[str]]) -> list[str]:
    """What is said of each call, all of which must exit with `code`."""
    found = subprocess.run(
        [sys.executable, "-c", _REFUSED, json.dumps(calls)], cwd=folder, env={**os.environ, **_THERE},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    codes, said = zip(*map(json.loads, found.stdout.splitlines()), strict=True)
    assert codes == (code,) * len(calls), said
    return list(said)


def _heed_ctrl_c() -> None:
    """Let Ctrl-C end a child, also one of a shell's job in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _running(folder: Path, *arguments: str) -> Iterator[str]:
    """The address of a service, which Ctrl-C must end; on Windows nobody else can press it."""
    with subprocess.Popen(
        _command(arguments), cwd=folder, env={**os.environ, **_THERE}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, preexec_fn=None if _ON_WINDOWS else _heed_ctrl_c,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                yield found[0]
                break
        process.send_signal(signal.SIGTERM if _ON_WINDOWS else signal.SIGINT)
        said = process.stdout.read()
        assert _ON_WINDOWS or process.wait(30) in (0, 130), said
        assert "Traceback" not in said


def test_every_command_has_its_help(call: Call, folder: Path) -> None:
    listed = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", call("--help").stdout, re.MULTILINE)
    assert {"train", "label", "publish", "serve"} <= set(listed)
    said = _all_called(folder, [(command, "--help") for command in listed])
    assert all("Usage" in one for one in said)


def test_a_model_is_trained_asked_and_explained(call: Call, folder: Path) -> None:
    explained, evaluated = _all_called(
        folder,
        [
            ("explain", "tickets.onnx", "my card was charged twice"),
            ("evaluate", "tickets.onnx", "support_tickets_test.csv", "--json"),
        ],
    )
    assert "billing" in explained
    assert json.loads(evaluated)["accuracy"] > 0.6
    forms = ("csv", "jsonl", "xlsx")
    predict = ("predict", "tickets.onnx", "support_tickets_test.csv", "--output")
    _all_called(folder, [(*predict, f"answers.{form}") for form in forms])
    call(*predict, "answers.parquet", "--workers", "2")
    assert all((folder / f"answers.{form}").stat().st_size > 0 for form in (*forms, "parquet"))


def test_commands_do_their_work(folder: Path) -> None:
    calls = [
        ("check", "few.csv", "--labels"),
        ("report", "tickets.onnx", "support_tickets_test.csv", "--output", "report.html"),
        ("compare", "tickets.onnx", "tickets.onnx", "support_tickets_test.csv"),
        ("inspect", "tickets.onnx", "--evidence", "support_tickets.csv"),
        ("drift", "tickets.onnx", "support_tickets_test.csv"),
        ("publish", "tickets.onnx", "registry"),
        ("lexicon", "tickets.onnx"),
        ("tune", "few.csv", "--trials", "2", "--folds", "2", "--epochs", "1"),
    ]
    assert all(_all_called(folder, calls))


def test_a_file_that_is_there_is_replaced(call: Call, folder: Path) -> None:
    (folder / "old.onnx").write_bytes(b"old")
    call("train", "few.csv", "--output", "old.onnx", "--epochs", "1")
    assert len((folder / "old.onnx").read_bytes()) > 1000


def test_a_name_that_no_file_can_have_there_is_refused_before_anything_is_trained(folder: Path) -> None:
    names = ("nul.onnx", "COM1.onnx", "what?.onnx", "aux", "model.onnx.")
    said = _said_of(folder, 6, [("train", "few.csv", "--output", name) for name in names])
    for name, one in zip(names, said, strict=True):
        assert one.splitlines()[-1].startswith(f"Error: Windows has no file {name!r}")


def test_paths_with_drive_letters_are_files_and_no_urls(folder: Path) -> None:
    paths = (r"C:\tables\tickets.csv", r"\\server\share\tickets.csv")
    for said in _said_of(folder, 3, [("check", path) for path in paths]):
        assert said.startswith("Error: ")
        assert "URL" not in said


def test_signs_that_the_code_page_lacks_are_written_as_escapes(call: Call) -> None:
    assert "\\u20ac" in call("explain", "tickets.onnx", "\u20ac 40 charged twice").stdout
    found = call("explain", "tickets.onnx", "\u20ac 40 charged \U0001f600", "--json").stdout
    assert found.isascii()
    assert json.loads(found)


def test_one_process_serves_until_ctrl_c(folder: Path) -> None:
    with _running(folder, "serve", "tickets.onnx", "--port", "0") as address:
        found = httpx.post(f"{address}/v1/classify", json={"inputs": ["my card was charged twice"], "explain": True})
        assert found.json()["results"][0]["label"] == "billing"
        assert httpx.get(f"{address}/metrics").text.count("textcls_requests_total{") == 1
        # An offer of another protocol is passed over, and the body is not taken for that.
        offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}
        asked = {"inputs": "my card was charged twice"}
        assert httpx.post(f"{address}/v1/classify", json=asked, headers=offer).status_code == 200
        # A page whose name was let point to this machine.
        assert httpx.get(f"{address}/v1/models", headers={"Host": "evil.example"}).status_code == 421


def test_one_process_takes_up_a_model_that_is_replaced(folder: Path, call: Call) -> None:
    (folder / "live.onnx").write_bytes((folder / "tickets.onnx").read_bytes())
    call("train", "few.csv", "--output", "next.onnx", "--epochs", "1")
    with _running(folder, "serve", "live.onnx", "--port", "0", "--watch-seconds", "0.2") as address:
        before = httpx.get(f"{address}/v1/models").text
        (folder / "next.onnx").replace(folder / "live.onnx")
        until = time.monotonic() + 30
        while httpx.get(f"{address}/v1/models").text == before:
            assert time.monotonic() < until
            time.sleep(0.2)


def test_what_has_no_effect_here_is_refused_in_one_sentence(folder: Path) -> None:
    options = ("--workers", "--drain-seconds", "--receive-seconds")
    said = _said_of(folder, 2, [("serve", "tickets.onnx", option, "2") for option in options])
    for option, one in zip(options, said, strict=True):
        assert f"one process answers, by uvicorn alone: leave {option} out" in one
        assert one.count("\n") == 1


def test_texts_are_labelled_on_a_page(folder: Path) -> None:
    with _running(
        folder, "label", "support_tickets.csv", "--text-column", "text", "--labels", "billing,returns",
        "--output", "labels.jsonl", "--port", "0",
    ) as address:  # fmt: skip
        assert "<!doctype html>" in httpx.get(address).text.lower()
