"""The kernels build for GPUs that are not here, and fit: no spills, shared memory, tensor cores.

With the Triton that is installed, and with others that `TEXTCLS_TRITONS` names: folders of `pip install --target`,
separated as in PATH. `make kernels` runs the oldest and the newest that pyproject.toml allows.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="building the kernels needs triton: pip install 'textcls[kernels]'")

HERE = Path(__file__).parent
SHARED_MEMORY = {80: 166_912, 90: 232_448, 100: 232_448}  # bytes that a block of threads may have
TABLE = ("gather_kernel", "adagrad_kernel", "adagrad_pieces_kernel", "uses_kernel")
READOUT = ("readout_forward_kernel", "readout_backward_kernel")
WITHOUT_PRODUCTS = ("delta_kernel", "prepare_metric_kernel", "metric_gradient_kernel", *TABLE, *READOUT)
OTHERS = [folder for folder in os.environ.get("TEXTCLS_TRITONS", "").split(os.pathsep) if folder]


def rows_of(dtype: str, folder: str) -> list[dict[str, int | str]]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    places = [*([folder] if folder else []), str(HERE.parents[1] / "kernels")]
    environment |= {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(HERE / "ahead_of_time.py"), dtype]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("folder", ["", *OTHERS], ids=lambda folder: Path(folder).name or "installed")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_every_configuration_builds_and_fits(dtype: str, folder: str) -> None:
    rows = rows_of(dtype, folder)
    names = {(row["kernel"], row["architecture"]) for row in rows}
    assert len(names) == {"float16": 7 + 3 * 2, "bfloat16": 7 + 2, "float32": 7 + 2 + (4 + 2) * 3}[dtype]
    for row in rows:
        print(row)  # noqa: T201 - shown where the test fails
        assert row["spilled"] == 0, row
        assert int(row["shared"]) <= SHARED_MEMORY[int(row["architecture"])], row
        if row["kernel"] in WITHOUT_PRODUCTS:
            continue
        assert int(row["wgmma"]) + int(row["mma"]) + int(row["tcgen05"]) > 0, row
        if row["kernel"] in ("forward_kernel", "backward_kernel") and dtype != "float32":
            assert int(row["wgmma"]) > 0, row
