"""The benchmark runs end to end where there is no GPU; what it times is not claimed here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(torch.cuda.is_available(), reason="a dry run is for machines without a GPU")
def test_benchmark_runs_dry_and_checks_every_competitor(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    command = [sys.executable, str(ROOT / "kernels/benchmarks/bench_metric_attention.py"), "--dry"]
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
    script = str(ROOT / "kernels/benchmarks/bench_metric_attention.py")
    done = subprocess.run(
        [sys.executable, script, "--dry", "--no-gate", "--budget-s", "0"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "kernels")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("left out: the time is up") == 15
    assert "not run (--no-gate)" in done.stdout
