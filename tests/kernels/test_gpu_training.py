"""The benchmark of training on a GPU runs end to end where there is none; what it times is not claimed here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="the kernels need triton: pip install 'textcls[kernels]'")
pytest.importorskip("sklearn", reason="the benchmarks need scikit-learn")
pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_training.py"


def ran(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a dry run is for machines without a GPU")
def test_a_dry_run_trains_on_both_sides_and_claims_no_times(tmp_path: Path) -> None:
    done = ran("--dry", "--output", str(tmp_path / "gpu.md"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith((tmp_path / "gpu.md").read_text(encoding="utf-8").strip())
    assert "A dry run, without a GPU and without times" in done.stdout
    assert "the kernels in Triton's interpreter" in done.stdout
    report = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert [(each["rows"], each["seconds"]) for each in report["whole"]] == [
        ("120 real", None),
        ("120 real", None),
        ("120 made", None),
        ("120 made", None),
    ]
    assert [row.pop("table") for row in report["steps"]] == ["on the device", "on the CPU"]
    assert all(value is None for row in report["steps"] for value in row.values())
    assert report["difference"] < 1e-5


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_the_benchmark_says_what_runs_here(tmp_path: Path) -> None:
    done = ran(str(tmp_path))
    assert done.returncode == 2
    assert "PyTorch finds no GPU here; --dry runs without one." in done.stderr
    assert "DATA is missing" in ran().stderr
