"""`textcls vectors distil`, with a small sentence-transformers model that is made here."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import run, succeed
from tests.training.helpers import make_sentence_encoder
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.vectors import file, sentence_encoder

pytest.importorskip(
    "sentence_transformers", reason="a teacher needs sentence-transformers: pip install textcls[teacher]"
)
pytestmark = pytest.mark.filterwarnings("ignore")

DISTIL = ("vectors", "distil", "--teacher", "small", "--words", "words.txt", "--dims", "8", "--quiet")


@pytest.fixture
def sample_folder(tmp_path: Path, sample: LabelledTexts, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a teacher, a list of words and a file of texts, where the commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(sentence_encoder.CACHE_VARIABLE, str(tmp_path / "cache"))
    words = [word.lower() for text in sample.texts for word in re.findall(r"\w+", text)]
    make_sentence_encoder(tmp_path / "small", words)
    Path("words.txt").write_text("\n".join(dict.fromkeys(words)), encoding="utf-8")
    lines = (text.replace(chr(34), "").replace("\n", " ") for text in sample.texts)
    Path("texts.csv").write_text("message\n" + "".join(f'"{line}"\n' for line in lines), encoding="utf-8")
    return tmp_path


def test_vectors_are_fitted_to_texts_and_say_so(sample_folder: Path) -> None:
    succeed(*DISTIL, "--output", "plain.vectors")
    succeed(*DISTIL, "--texts", "texts.csv", "--output", "fitted.vectors")
    plain, fitted = (file.load(sample_folder / name) for name in ("plain.vectors", "fitted.vectors"))
    assert plain.words == fitted.words
    assert np.abs(plain.row_VD - fitted.row_VD).max() > 0.02
    said = "each word by itself through the encoder, 8 principal components, smooth inverse frequency"
    assert plain.about["how"] == said
    assert re.fullmatch(rf"{said}, fitted to its vectors of 1\d\d texts", fitted.about["how"])
    assert re.fullmatch("[0-9a-f]{64}", fitted.about["texts_sha256"])
    assert fitted.about["texts"] in fitted.about["how"]
    assert "texts" not in plain.about


def test_the_same_texts_in_any_order_give_the_same_bytes(sample_folder: Path) -> None:
    header, *rows = Path("texts.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("other.csv").write_text(header + "".join([*rows[::-1], *rows[:9]]), encoding="utf-8")
    for name in ("texts", "other"):
        succeed(*DISTIL, "--texts", f"{name}.csv", "--text-column", "message", "--output", f"{name}.vectors")
    assert Path("texts.vectors").read_bytes() == Path("other.vectors").read_bytes()


@pytest.mark.parametrize(
    ("code", "content", "options", "message"),
    [
        (3, "text\n", ("--texts", "bad.csv"), "bad.csv has no rows"),
        (3, "text\n   \n", ("--texts", "bad.csv"), "bad.csv"),
        (3, "text\nqqq\n", ("--texts", "bad.csv"), "None of the words occurs in the texts"),
        (3, "text\na\n", ("--texts", "bad.csv", "--text-column", "body"), "has no column 'body'"),
        (3, "text\na\n", ("--texts", "nowhere.csv"), "nowhere.csv"),
        (2, "text\na\n", ("--text-column", "text"), "--text-column needs --texts"),
    ],
)
def test_texts_that_cannot_be_used_are_told_and_nothing_is_written(
    sample_folder: Path, code: int, content: str, options: tuple[str, ...], message: str
) -> None:
    (sample_folder / "bad.csv").write_text(content)
    found = run(*DISTIL, *options, "--output", "v.vectors")
    assert (found.exit_code, found.stdout) == (code, "")
    assert message in found.stderr
    assert not Path("v.vectors").exists()
