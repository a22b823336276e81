"""The benchmark runs end to end where there is no GPU; what it times is not claimed here."""

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "kernels/benchmarks/bench_metric_attention.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_metric_attention", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(torch.cuda.is_available(), reason="a dry run is for machines without a GPU")
def test_benchmark_runs_dry_and_checks_every_competitor(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    command = [sys.executable, str(SCRIPT), "--dry"]
    done = subprocess.run(
        [*command, "--output", str(table)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "kernels"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    text = table.read_text(encoding="utf-8")
    assert text == done.stdout
    assert "nothing is timed" in text
    assert "tests of the kernels: 1 passed" in text
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    by_name: dict[str, list[list[str]]] = {}
    for row in rows[2:]:
        by_name.setdefault(row[1], []).append(row)
    assert {name: len(found) for name, found in by_name.items()} == {
        "kernels": 3,
        "twin": 3,
        **dict.fromkeys(("sdpa-flash", "sdpa-cudnn", "sdpa-efficient", "flex"), 2),
        "varlen": 1,
    }
    for name in ("kernels", "twin"):
        for row in by_name[name]:
            assert all(float(error) < 1e-2 for error in row[2:5]), row
    for row in rows[2:]:  # checked, or said why not; never timed
        assert row[-1] or all(row[2:5]), row
        assert not any(row[5:-1]), row


@pytest.mark.skipif(torch.cuda.is_available(), reason="a dry run is for machines without a GPU")
def test_benchmark_leaves_out_what_the_budget_does_not_reach(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--dry", "--no-gate", "--budget-s", "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "kernels")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("left out: the time is up") == 15
    assert "not run (--no-gate)" in done.stdout


def test_a_competitor_that_cannot_be_built_is_a_row_and_the_others_follow(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise RuntimeError("no mask")

    monkeypatch.setattr("torch.nn.attention.flex_attention.create_block_mask", fail)
    case = bench.make_case(bench.Shape(4, 2, 20, 16, torch.float32, mean=8), "cpu")
    found = {competitor.name: competitor for competitor in bench.competitors(case, "eager")}
    assert bench.attempt(case, found["flex"], 1, True).failure == "RuntimeError: no mask"
    assert not bench.attempt(case, found["twin"], 1, True).failure


def test_a_ratio_is_of_times_that_were_taken_in_the_same_way(bench: ModuleType) -> None:
    def measured(graph: float | None, eager: float | None) -> Any:
        times = [{} if time is None else {"both": bench.Timing((time,))} for time in (graph, eager)]
        return bench.Measured({}, *times, math.nan)

    kernels = measured(2, 10)
    assert measured(6, 50).ratio(kernels, "both") == 3
    assert measured(None, 50).ratio(kernels, "both") == 5
    assert measured(6, 50).ratio(measured(None, 10), "both") == 5
    assert math.isnan(measured(None, None).ratio(kernels, "both"))
    assert math.isnan(measured(6, None).ratio(measured(None, 10), "both"))
