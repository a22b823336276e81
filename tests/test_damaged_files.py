"""Files that chance has damaged, of every format that is read: what they hold, or one sentence, whatever the damage."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import damaged
from tests.chance import draws
from tests.damaged import Kind
from textcls.errors import InputError

ROOT = Path(__file__).parent.parent
# How long damaged files are read; some seventy a second.
SECONDS = float(os.environ.get("TEXTCLS_DAMAGED_SECONDS", draws(25)))


def test_no_damaged_file_kills_who_reads_it_hangs_or_ends_in_a_traceback(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    call = [sys.executable, "-m", "tests.damaged", str(tmp_path), str(seed), str(SECONDS)]
    path = os.pathsep.join(str(ROOT / part) for part in (".", "training", "kernels"))
    # What libraries write themselves of a damaged file may quote its bytes.
    done = subprocess.run(
        call, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, errors="replace"
    )
    rounds = [json.loads(line) for line in (tmp_path / "rounds.jsonl").read_text("utf-8").splitlines()]
    again = f"python -m tests.damaged FOLDER {seed} {SECONDS}"
    assert done.returncode == 0, f"{again}: {rounds[-1:]}, exit code {done.returncode}\n{done.stderr[-2000:]}"
    assert not (wrong := [one for one in rounds if "wrong" in one]), f"{again}: {wrong}"
    assert len({one["kind"] for one in rounds}) > 10


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("held"), "KeyError: 'held'"),
        (InputError("two\nlines"), "not one line"),
        (InputError(""), "not one line"),
        (InputError("It is damaged."), None),
    ],
)
def test_what_is_no_sentence_is_told(tmp_path: Path, error: Exception, said: str | None) -> None:
    def read(folder: Path) -> Any:
        raise error

    found = damaged.attempt(Kind("any", read, "any"), tmp_path)
    assert (found is None) if said is None else (found is not None and said in found)


def test_whoever_takes_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(folder: Path) -> Any:
        while True:
            pass

    monkeypatch.setattr(damaged, "DEADLINE", 1)
    assert "SlowError" in (damaged.attempt(Kind("any", read, "any"), tmp_path) or "")
