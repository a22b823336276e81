"""Loops that are compiled ahead, in a process beside the first training on a machine."""

import subprocess
from pathlib import Path
from typing import Any

import numba
import pytest

import textcls
from tests.service.processes import until
from textcls_training.fit.compiled.ahead import calls, compiling_ahead


def test_what_is_compiled_ahead_is_what_training_calls(tickets: list[tuple[str, str]], tmp_path: Path) -> None:
    texts, labels = zip(*tickets[:80], strict=True)
    textcls.train(texts, labels, tmp_path / "tickets.onnx", epochs=1, vectors="none")
    for function, *arguments in calls():
        kept = function._cache._cache_file._load_index()
        assert [types for types, *_ in kept] == [tuple(map(numba.typeof, arguments))], function.__name__


def test_the_process_keeps_what_it_compiles_and_ends_with_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    started: list[subprocess.Popen[bytes]] = []

    class Process(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Process)
    with compiling_ahead() as start:
        assert not started
        start()
        until(lambda: [*tmp_path.rglob("step.adamw*.nbi")])
        assert started[0].poll() is None
    assert started[0].poll() == 0
    assert not [*tmp_path.rglob("step.predict_texts*.nbi")]


def test_a_machine_of_one_processor_compiles_nothing_beside_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    started: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **_: started.append(given))
    with compiling_ahead() as start:
        start()
    assert not started
