"""A training that is killed at any moment goes on, to the bytes of one that was never killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chance import draws

ROOT = Path(__file__).parents[3]


# Enough rows for one split, two fits side by side; and few, for which there are three.
@pytest.mark.parametrize(("rows", "rehearsal_rows"), [(1_500, 20_000), (600, 100)], ids=["all rows", "a sample"])
def test_a_training_that_is_killed_at_random_moments_ends_in_the_same_bytes(
    tmp_path: Path, rows: int, rehearsal_rows: int
) -> None:
    kills = draws(20)
    options = {"epochs": 4, "dim": 8, "vectors": "none", "rehearsal_rows": rehearsal_rows}
    folders = os.pathsep.join(str(ROOT / folder) for folder in (".", "training", "kernels"))
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "killed.py", tmp_path, json.dumps(options), str(rows), str(kills)],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] >= kills
    assert found["went_on"] >= kills // 2
    # How many end of those that were killed is chance; the last does.
    assert len(found["hashes"]) > 2
    assert set(found["hashes"]) == {found["hashes"][0]}
