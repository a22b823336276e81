"""How much memory a training takes before its rows lie on the disk."""

from pathlib import Path

import pytest

from textcls._util import memory as of_the_system
from textcls.errors import ConfigError
from textcls_training.config import memory
from textcls_training.config.settings import from_options


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [
        ("2GB", 2 * 10**9),
        ("1.5 gb", 1_500_000_000),
        ("2GiB", 2**31),
        ("1000000000", 10**9),
        (10**10, 10**10),
        (None, None),
    ],
)
def test_a_size_is_a_number_of_bytes_with_a_unit_or_without(given: object, bytes_: int | None) -> None:
    assert from_options({"max_memory": given}).max_memory == bytes_


@pytest.mark.parametrize("given", ["2XB", "GB", "-2GB", "999MB", True, 2.5, "nan", "1e9"])
def test_any_other_size_is_refused_with_an_example(given: object) -> None:
    with pytest.raises(ConfigError, match=r"^max_memory must be a size of at least 1 GB, such as 2GB, not "):
        from_options({"max_memory": given})


def test_by_default_half_of_what_the_container_has_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("3200000000\n")
    monkeypatch.setattr(of_the_system, "_LIMITS", (tmp_path / "memory.max",))
    monkeypatch.delenv("TMPDIR", raising=False)
    spill = memory.spill_of(None, tmp_path / "model.onnx")
    assert (spill.limit, spill.folder) == (100_000_000, tmp_path)


def test_temporary_files_lie_beside_the_output_unless_the_environment_names_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert memory.spill_of(10**9, tmp_path / "model.onnx").folder is None
