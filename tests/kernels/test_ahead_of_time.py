"""The kernels build for Hopper and fit: no spills, shared memory, tensor cores. No GPU is needed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="building the kernels needs triton: pip install 'textcls[kernels]'")

HERE = Path(__file__).parent
SHARED_MEMORY = 232_448  # bytes that a block of threads may have on sm_90
WITHOUT_PRODUCTS = ("delta_kernel", "prepare_metric_kernel", "metric_gradient_kernel")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_configuration_builds_for_sm_90_and_fits(dtype: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(HERE.parents[1] / "kernels"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "ahead_of_time.py"), dtype]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 4 * 8 + 4
    for row in rows:
        print(row)  # noqa: T201 - shown where the test fails
        assert row["spilled"] == 0, row
        assert row["shared"] <= SHARED_MEMORY, row
        if row["kernel"] in WITHOUT_PRODUCTS:
            continue
        assert row["wgmma"] + row["mma"] > 0, row
        if row["kernel"] in ("forward_kernel", "backward_kernel") and dtype != "float32":
            assert row["wgmma"] > 0, row
