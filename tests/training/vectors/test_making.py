"""How files of vectors are made: from text, from folders of model2vec, from a teacher; and the commands for it."""

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import fail, run, succeed
from textcls.errors import InputError
from textcls_training.vectors import build, distil, file, model2vec, tensors, text_files

GLOVE = "the 1 0 0\nCard 0 1 0.5\ncard 9 9 9\nnew york 1 1 1\nnew-york 1 1 1\n. 0 0 1\nrefund -1 0.25 0\n"


@pytest.mark.parametrize(
    "content",
    [GLOVE.encode(), b"7 3\n" + GLOVE.encode(), gzip.compress(GLOVE.encode()), GLOVE.replace("\n", " \n").encode()],
    ids=["GloVe", "with a header", "compressed", "fastText, with spaces at the ends"],
)
def test_text_files_of_all_kinds_give_words_that_texts_can_hold(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    words, rows = text_files.read(path, 10)
    assert words == ["the", "card", ".", "refund"]
    np.testing.assert_array_equal(rows, [[1, 0, 0], [0, 1, 0.5], [0, 0, 1], [-1, 0.25, 0]])
    assert text_files.read(path, 2)[0] == ["the", "card"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "contains no usable word"),
        (b"the 1 2\ncard 1\n", r"line 2: expected a word and 2 finite numbers"),
        (b"the 1 2\ncard 1 two\n", r"line 2: expected a word and 2 finite numbers"),
        (b"the 1 2\ncard 1 nan\n", r"line 2: expected a word and 2 finite numbers"),
        (b"4 3\nthe 1 2\n", r"line 2: expected a word and 3 finite numbers"),
        (b"\x1f\x8b\x08cut", "is cut off, or no gzip file"),
        (b"a" * 400_000, r"line 1: it has 300,000 bytes or more"),
        (b"text,label\nhello,a\n", "is it a text file of vectors"),
        (b"400000 2\nthe 1 2\ncard 2 3\n", "has 2 words, and its first line says 400,000: copy it again"),
    ],
)
def test_text_that_holds_no_vectors_is_told_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "given.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        text_files.read(path, 10)


def test_frequent_words_are_made_light_and_the_mean_is_taken_off() -> None:
    words = [f"w{i}" for i in range(500)]
    raw = np.random.default_rng(0).standard_normal((500, 16)).astype(np.float32) + 3
    kept, rows = build.prepared(words, raw, 16)
    assert kept == words
    centred = raw - raw.mean(0)
    frequency = 1 / np.arange(1, 501) / (1 / np.arange(1, 501)).sum()
    expected = centred * (0.01 / (0.01 + frequency))[:, None]
    np.testing.assert_allclose(rows, expected, atol=1e-4)


def test_fewer_numbers_are_the_principal_components() -> None:
    rng = np.random.default_rng(0)
    inner = rng.standard_normal((300, 3)) * [5, 2, 1]
    x = (inner @ rng.standard_normal((3, 20))).astype(np.float32)
    x -= x.mean(0)
    kept = x @ build.principal_axes(x, 3)
    np.testing.assert_allclose(kept @ kept.T, x @ x.T, atol=1e-3 * np.abs(x @ x.T).max())
    assert np.all(np.diff(kept.var(0)) < 0)


def test_vectors_that_are_all_alike_or_words_that_do_not_exist_are_told() -> None:
    with pytest.raises(InputError, match="All vectors are alike"):
        build.prepared(["a", "b"], np.ones((2, 4), np.float32), 4)
    with pytest.raises(InputError, match="No usable word"):
        build.prepared([], np.ones((0, 4), np.float32), 4)


def model2vec_folder(folder: Path, model: Mapping[str, object], **arrays: np.ndarray) -> Path:
    folder.mkdir()
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}))
    with (folder / "model.safetensors").open("wb") as opened:
        tensors.write(opened, arrays, {})
    return folder


TABLE = np.arange(1, 11, dtype=np.float32).reshape(5, 2)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordPiece", "vocab": {"[PAD]": 0, "##s": 1, "card": 2, "!": 3, "Card": 4}},
        {"type": "Unigram", "vocab": [["<s>", 0.0], ["s", -1.0], ["\u2581card", -2.0], ["\u2581!", -3.0], ["x", 0]]},
        {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0120card": 2, "\u0120!": 3, "c": 4}},
    ],
    ids=lambda model: str(model["type"]),
)
def test_of_a_model2vec_folder_whole_words_are_taken_as_they_are(tmp_path: Path, model: dict[str, object]) -> None:
    folder = model2vec_folder(tmp_path / "m2v", model, embeddings=TABLE)
    words, rows = model2vec.read(folder, 10)
    assert words == ["card", "!"]
    np.testing.assert_array_equal(rows, TABLE[2:4])


def test_model2vec_folders_with_shared_rows_and_weights_are_understood(tmp_path: Path) -> None:
    model = {"type": "WordPiece", "vocab": {"a": 0, "b": 1, "c": 2}}
    folder = model2vec_folder(
        tmp_path / "m2v", model, embeddings=TABLE[:2], mapping=np.array([1, 0, 1]), weights=np.array([1, 2, 0.5])
    )
    words, rows = model2vec.read(folder, 10)
    assert words == ["a", "b", "c"]
    np.testing.assert_array_equal(rows, [TABLE[1], 2 * TABLE[0], 0.5 * TABLE[1]])


def test_folders_that_are_none_of_model2vec_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is it a model2vec folder"):
        model2vec.read(tmp_path, 10)
    odd = model2vec_folder(tmp_path / "odd", {"type": "WordPiece", "vocab": 3}, embeddings=TABLE)
    with pytest.raises(InputError, match="is not a known kind of tokenizer"):
        model2vec.read(odd, 10)
    short = model2vec_folder(tmp_path / "short", {"type": "WordPiece", "vocab": {"a": 0, "b": 1}}, embeddings=TABLE[:1])
    with pytest.raises(InputError, match="names more rows than the table has"):
        model2vec.read(short, 10)
    other = model2vec_folder(tmp_path / "other", {"type": "WordPiece", "vocab": {"a": 0}}, weights=TABLE)
    with pytest.raises(InputError, match="holds no table 'embeddings'"):
        model2vec.read(other, 10)


def test_a_list_of_words_is_read_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("The\ncard\n\nnew york\nCARD\nrefund\n")
    assert distil.read_words(path, 10) == ["the", "card", "refund"]
    assert distil.read_words(path, 2) == ["the", "card"]
    path.write_text("\n")
    with pytest.raises(InputError, match="contains no usable word"):
        distil.read_words(path, 10)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        distil.read_words(path, 10)


def test_imported_vectors_can_be_trained_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove.txt").write_text(GLOVE)
    said = succeed("vectors", "import", "glove.txt", "--output", "some.vectors", "--licence", "CC0", "--dims", "2")
    assert said == "4 words of 2 numbers, 0.00 MB -> some.vectors\n"
    found = file.load(Path("some.vectors"))
    assert found.about["source"] == "glove.txt"
    assert found.about["licence"] == "CC0"
    assert len(found.about["source_sha256"]) == 64
    rows = "".join(f"the card number {i},a\na refund number {i},b\n" for i in range(40))
    Path("rows.csv").write_text("text,label\n" + rows)
    said = succeed("train", "rows.csv", "--vectors", "some.vectors", "--output", "m.onnx", "--epochs", "1", "--quiet")
    assert "The vectors of glove.txt (licence: CC0) cover " in said
    assert " in the ensemble." in said
    shown = " ".join(succeed("inspect", "m.onnx", "--verbose").split())
    assert "vectors glove.txt (licence: CC0), " in shown
    assert f"word vectors sha256 {found.sha256[:12]}" in shown
    report = json.loads(
        succeed("train", "rows.csv", "--vectors", "some.vectors", "-o", "m.onnx", "--epochs", "1", "--json", "--quiet")
    )
    assert report["vectors"]["ensemble_weight"] == pytest.approx(report["shares"][1], abs=1e-6)


def test_bad_vectors_are_told_before_anything_is_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("text,label\na card,a\na refund,b\n")
    Path("bad.vectors").write_text("no vectors")
    said = fail(3, "train", "rows.csv", "--vectors", "bad.vectors", "--output", "m.onnx", "--quiet")
    assert "bad.vectors is damaged, or not a file of vectors (" in said
    said = fail(3, "train", "rows.csv", "--vectors", "none.vectors", "--output", "m.onnx", "--quiet")
    assert "none.vectors cannot be read: No such file or directory." in said
    assert not Path("m.onnx").exists()


@pytest.mark.parametrize("output", ["glove.txt", "nowhere/some.vectors"])
def test_nothing_is_written_over_the_input_or_into_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove.txt").write_text(GLOVE)
    assert run("vectors", "import", "glove.txt", "--output", output).exit_code in (3, 6)
    assert Path("glove.txt").read_text() == GLOVE


def test_without_the_extra_the_command_to_type_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("card\n")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    said = fail(5, "vectors", "distil", "--teacher", "t", "--words", "words.txt", "--output", "v", "--quiet")
    assert 'run: pip install "textcls[teacher]"' in said


def test_options_of_vectors_have_variables_and_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove.txt").write_text(GLOVE)
    Path("textcls.toml").write_text("[vectors.import]\nmost = 2\n")
    assert "2 words of 3 numbers" in succeed("vectors", "import", "glove.txt", "-o", "v")
    Path("textcls.toml").write_text("[vectors.import]\nmots = 2\n")
    assert "[vectors.import]: there is no option 'mots'" in fail(2, "vectors", "import", "glove.txt", "-o", "v")
    Path("textcls.toml").unlink()
    assert "3 words" in run("vectors", "import", "glove.txt", "-o", "v", TEXTCLS_VECTORS_IMPORT_MOST="3").stdout
