"""The file of vectors: what goes in comes out, and what is damaged is told in one sentence."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from textcls.errors import InputError
from textcls_training.vectors import file, tensors

WORDS = ["the", "card", "naïve", "東", "!"]


def rows(dims: int = 6) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((len(WORDS), dims)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "some.vectors"
    file.save(found, WORDS, rows(), {"source": "Würfel", "licence": "CC0"}, 8)
    return found


@pytest.mark.parametrize(("bits", "dims", "error"), [(8, 6, 0.01), (4, 6, 0.15), (4, 5, 0.15), (8, 1, 0.01)])
def test_words_vectors_and_their_source_come_back(tmp_path: Path, bits: file.Bits, dims: int, error: float) -> None:
    path, given = tmp_path / "some.vectors", rows(dims)
    file.save(path, WORDS, given, {"source": "Würfel"}, bits)
    found = file.load(path)
    assert [*found.words] == WORDS
    assert found.about == {"source": "Würfel"}
    longest = np.linalg.norm(given, axis=1).max()
    np.testing.assert_allclose(found.row_VD[:, :dims] * longest, given, atol=error * np.abs(given).max())
    assert not found.row_VD[:, dims:].any()
    assert np.linalg.norm(found.row_VD, axis=1).max() == pytest.approx(1)
    assert found.numbers(["card", "nothing", "!"]).tolist() == [1, -1, 4]


def test_the_same_vectors_give_the_same_bytes_and_another_word_another_hash(path: Path, tmp_path: Path) -> None:
    again, other = tmp_path / "again.vectors", tmp_path / "other.vectors"
    file.save(again, WORDS, rows(), {"licence": "CC0", "source": "Würfel"}, 8)
    file.save(other, ["a", *WORDS[1:]], rows(), {}, 8)
    assert again.read_bytes() == path.read_bytes()
    assert file.load(again).sha256 == file.load(path).sha256 != file.load(other).sha256


def test_four_bits_take_half_the_room(tmp_path: Path) -> None:
    words, many = [f"w{i}" for i in range(100)], np.ones((100, 256), np.float32)
    sizes: list[int] = []
    for bits in (8, 4):
        file.save(tmp_path / "v", words, many, {}, 8 if bits == 8 else 4)
        sizes.append((tmp_path / "v").stat().st_size)
    assert sizes[0] - sizes[1] == 100 * 128


def rewritten(path: Path, **changes: np.ndarray) -> None:
    arrays, header = tensors.read(path)
    with path.open("wb") as opened:
        tensors.write(opened, {**arrays, **changes}, header.about)


def text(words: str) -> np.ndarray:
    return np.frombuffer(words.encode(), np.uint8)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"words": text("the\ncard\na\nb\n")}, "it has 4 words and 5 vectors"),
        ({"words": text("the\ncard\na\nb\nb\n")}, "a word stands there twice"),
        ({"words": text("the\ncard\na\nb\nc")}, "its words are cut off"),
        ({"words": text("the\ncard\na\nb\nTwo words\n")}, "'Two words' is no word as texts are cut into"),
        ({"words": np.frombuffer(b"\xff\n" * 5, np.uint8)}, "its words are no UTF-8"),
        ({"scales": np.full(5, np.nan, np.float16)}, "a vector holds a number that is not finite"),
        ({"scales": np.zeros(5, np.float16)}, "the vector of 'the' is zero"),
        ({"scales": np.zeros(4, np.float16)}, "it has 5 vectors of 6 numbers and 4 scales"),
        ({"rows": np.zeros((5, 2000), np.int8)}, "it has 5 vectors of 2,000 numbers and 5 scales"),
        ({"rows": np.zeros((5, 6), np.float32)}, "its arrays are not those of vectors"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_damaged_within_is_told(path: Path, changes: dict[str, np.ndarray], why: str) -> None:
    rewritten(path, **changes)
    with pytest.raises(InputError) as caught:
        file.load(path)
    assert f"({why}); copy it again, or make one with textcls vectors import." in str(caught.value)


def header(fields: object) -> bytes:
    found = json.dumps(fields).encode()
    return len(found).to_bytes(8, "little") + found


def entry(dtype: str, shape: list[object], *offsets: int) -> dict[str, object]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [*offsets]}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text,label\na,b\n",
        (2**60).to_bytes(8, "little") + b"{}",
        header([1]),
        header({"x": 1}),
        header(entry("Q9", [1], 0, 1)) + b"a",
        header(entry("U8", [-1], 0, 1)) + b"a",
        header(entry("U8", [2**62, 4], 0, 1)) + b"a",
        header(entry("U8", [2], 1, 3)) + b"abc",
        header(entry("U8", [2], 0, 2)) + b"a",
        header({"__metadata__": {"about": 3}}),
        header({"__metadata__": {"about": "[]"}}),
        header({"__metadata__": {"about": '{"licence": 1}'}}),
    ],
)
def test_what_is_no_file_of_vectors_is_told_at_the_first_look(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(content)
    for look in (file.check, file.load):
        with pytest.raises(
            InputError,
            match=r"odd is damaged, or no file of vectors \(.+\); copy it again, or make one with textcls vectors",
        ):
            look(path)


def test_another_safetensors_file_or_format_is_told(tmp_path: Path) -> None:
    path = tmp_path / "odd"
    for about, why in (({}, "it names no format"), ({"format": "textcls vectors 2"}, "this textcls reads")):
        with path.open("wb") as opened:
            tensors.write(opened, {"weights": np.zeros(3, np.float32)}, about)
        with pytest.raises(InputError, match=why):
            file.check(path)


def test_files_that_are_not_there_too_large_or_pipes_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none cannot be read: No such file"):
        file.load(tmp_path / "none")
    with pytest.raises(InputError, match="is no regular file"):
        file.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no regular file"):
        file.check(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as opened:
        opened.truncate(file.MOST_BYTES + 1)
    with pytest.raises(InputError, match=r"large has 1,000,000,001 bytes, and 1,000,000,000 are the most"):
        file.check(tmp_path / "large")
