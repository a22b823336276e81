"""The file of vectors: what goes in comes out, and what is damaged is told in one sentence."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from textcls.errors import ConfigError, InputError
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


def test_fewer_bits_take_less_room(tmp_path: Path) -> None:
    words, many = [f"w{i}" for i in range(100)], np.ones((100, 256), np.float32)
    sizes: list[int] = []
    bits: file.Bits
    for bits in (8, 4, 2):
        file.save(tmp_path / "v", words, many, {}, bits)
        sizes.append((tmp_path / "v").stat().st_size)
    assert sizes[0] - sizes[1] == 100 * 128
    assert abs(sizes[1] - sizes[2] - 100 * 64) < 16  # the header says "turned"


def test_two_bits_keep_scalar_products_however_unlike_the_numbers_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(50)]
    given = rng.standard_normal((50, 256)) * np.geomspace(1, 0.01, 256) * rng.uniform(0.1, 1, (50, 1))
    path = tmp_path / "two.vectors"
    file.save(path, words, given.astype(np.float32), {}, 2)
    found = file.load(path).row_VD
    given /= np.linalg.norm(given, axis=1).max()
    np.testing.assert_allclose(found @ found.T, given @ given.T, atol=0.15)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(given, axis=1), rtol=0.15)
    assert np.corrcoef((found @ found.T).ravel(), (given @ given.T).ravel())[0, 1] > 0.95


@pytest.mark.parametrize("dims", [2, 6, 48])
def test_two_bits_of_numbers_that_are_no_power_of_two_are_refused(tmp_path: Path, dims: int) -> None:
    with pytest.raises(ConfigError, match=f"must be a power of two from 4 on, not {dims}"):
        file.save(tmp_path / "some.vectors", WORDS, rows(dims), {}, 2)
    assert not (tmp_path / "some.vectors").exists()


def test_damaged_rows_of_two_bits_are_told(tmp_path: Path) -> None:
    path = tmp_path / "two.vectors"
    file.save(path, WORDS, rows(8), {}, 2)
    rewritten(path, turned=np.zeros((5, 3), np.uint8))
    for look in (file.check, file.load):
        with pytest.raises(InputError, match="it has vectors of 12 numbers, no power of two, in two bits"):
            look(path)


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
        ({"words": text("the\ncard\na\nb\nTwo words\n")}, "'Two words' is not a word that texts are cut into"),
        ({"words": np.frombuffer(b"\xff\n" * 5, np.uint8)}, "its words are not UTF-8"),
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
            match=r"odd is damaged, or not a file of vectors \(.+\); copy it again, or make one with textcls vectors",
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
    with pytest.raises(InputError, match="is not a regular file"):
        file.load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        file.check(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as opened:
        opened.truncate(file.MOST_BYTES + 1)
    with pytest.raises(InputError, match=r"large has 1,000,000,001 bytes; the maximum is 1,000,000,000"):
        file.check(tmp_path / "large")
