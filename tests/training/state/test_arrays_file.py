"""Files of arrays: what was written comes back, or is said to be damaged."""

import io
import os
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from textcls.errors import InputError
from textcls_training.state import arrays_file
from textcls_training.state.arrays_file import DamagedError

ARRAYS = {"0.row": np.arange(12, dtype=np.float32).reshape(3, 4), "steps": np.array(7), "none": np.zeros((0, 2))}
ABOUT = {"fit": "split 1 of 1", "done": False}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    arrays_file.write(tmp_path / "fit.npz", ARRAYS, ABOUT)
    return tmp_path / "fit.npz"


def test_arrays_come_back_with_their_types_and_shapes_and_what_was_said_of_them(path: Path) -> None:
    arrays, about = arrays_file.read(path)
    assert about == arrays_file.read_about(path) == ABOUT
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tolist() == array.tolist()
    assert arrays_file.read(path, "steps")[0].keys() == {"steps"}


def test_a_byte_that_was_changed_is_noticed_or_changes_nothing(path: Path) -> None:
    whole = path.read_bytes()
    noticed = 0
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            arrays, about = arrays_file.read(path)
        except DamagedError:
            noticed += 1
        else:
            assert about == ABOUT
            assert all(arrays[name].tolist() == array.tolist() for name, array in ARRAYS.items())
    assert noticed > len(whole) / 6


@pytest.mark.parametrize("length", [0, 1, 40, 500])
def test_a_file_that_was_cut_off_is_noticed(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedError, match=r"fit\.npz is damaged; it is not as it was written\."):
        arrays_file.read(path)


def test_pickles_and_what_is_compressed_are_refused(path: Path) -> None:
    packed = io.BytesIO()
    cast(Any, np.savez)(packed, about=np.array([{"a": 1}], dtype=object))
    path.write_bytes(packed.getvalue())
    with pytest.raises(DamagedError):
        arrays_file.read(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("about.npy", b"\0" * 1000)
    with pytest.raises(DamagedError):
        arrays_file.read(path)


def test_a_file_that_is_not_there_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.npz cannot be read: No such file or directory"):
        arrays_file.read(tmp_path / "no.npz")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fit.npz")
    with pytest.raises(DamagedError, match="is not a plain file"):
        arrays_file.read(tmp_path / "fit.npz")


def test_two_threads_never_read_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    within: list[int] = []
    most = 0

    def parsed(*given: Any, **options: Any) -> Any:
        nonlocal most
        within.append(1)
        most = max(most, len(within))
        time.sleep(0.01)
        within.pop()
        return load(*given, **options)

    load = np.load
    monkeypatch.setattr(np, "load", parsed)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(arrays_file.read, [path] * 8))
    assert len(found) == 8
    assert most == 1
