"""`textcls pretrain --objective label-names`: labels by their names alone."""

import json
from pathlib import Path

import pytest

from tests.command_line import fail, succeed, write_rows
from tests.training.helpers import make_sentence_encoder
from tests.training.pretraining.topics import COMMON, TOPICS, topic_texts
from textcls import Classifier

WORDS = {"sport": "team match player", "money": "bank loan market", "kitchen": "recipe butter oven"}


@pytest.fixture(scope="module")
def texts_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of three topics, and beside them the names of these in `names.json` and `names.txt`."""
    texts, _ = topic_texts(240)
    path = write_rows(tmp_path_factory.mktemp("topics") / "texts.csv", [("text",), *((text,) for text in texts)])
    path.with_name("names.json").write_text(json.dumps(WORDS), "utf-8")
    path.with_name("names.txt").write_text("\n".join(WORDS), "utf-8")
    return path


def learn(texts_path: Path, output: Path, *more: str | Path) -> str:
    names = texts_path.with_name("names.json")
    return succeed("pretrain", texts_path, "-o", output, "--objective", "label-names", "--names", names, *more)


@pytest.fixture(scope="module")
def learned(texts_path: Path) -> tuple[Path, str]:
    """A model that knows the names of the topics alone, and what was printed."""
    path = texts_path.with_name("topics.onnx")
    return path, learn(texts_path, path, "--quiet")


def test_new_texts_are_answered_with_the_labels_and_explained(learned: tuple[Path, str]) -> None:
    classifier = Classifier.load(learned[0])
    assert classifier.labels == tuple(WORDS)
    texts, topics = topic_texts(60, seed=9)
    answers = classifier.predict(texts, explain=True)
    assert sum(answer.label == topic for answer, topic in zip(answers, topics, strict=True)) >= 55
    assert all(answer.explanation and answer.explanation.completeness_error < 1e-4 for answer in answers)


def test_it_is_said_that_no_label_was_seen(learned: tuple[Path, str]) -> None:
    path, output = learned
    assert "3 labels by their names" in output
    assert "only labelled rows can show how many are right." in output
    assert "no labels, their names alone" in succeed("inspect", path)
    told = json.loads(succeed("inspect", path, "--json"))["training"]
    assert told["held_out_accuracy"] is None
    assert told["label_names"]["descriptions"] == WORDS


def test_the_same_texts_and_seed_give_the_same_bytes(
    learned: tuple[Path, str], texts_path: Path, tmp_path: Path
) -> None:
    told = json.loads(learn(texts_path, tmp_path / "again.onnx", "--json", "--quiet"))
    assert (tmp_path / "again.onnx").read_bytes() == learned[0].read_bytes()
    assert sum(told["sizes"].values()) == told["texts"] == 228
    assert told["learned"] < told["texts"]


def test_a_teacher_knows_what_names_mean(texts_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers", reason="the teacher is a sentence-transformers model")
    monkeypatch.setenv("TEXTCLS_CACHE", str(tmp_path / "cache"))
    encoder = make_sentence_encoder(tmp_path / "encoder", [*" ".join(TOPICS.values()).split(), *COMMON])
    learn(texts_path, tmp_path / "m.onnx", "--teacher", encoder, "--vectors", "none", "--quiet")
    assert "whose name encoder finds nearest" in succeed("inspect", tmp_path / "m.onnx").replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--objective", "label-names"), 2, "The objective label-names needs names"),
        (("--objective", "label-names", "--names", "names.txt", "--vectors", "none"), 2, "leave vectors none out"),
        (("--names", "names.txt"), 2, "names is an option of the objective label-names, not of cooccurrence"),
        (
            ("--objective", "label-names", "--names", "names.txt", "--dim", "8"),
            2,
            "dim is an option of the objective cooccurrence, not of label-names",
        ),
        (
            ("--objective", "label-names", "--names", "unknown.txt"),
            3,
            "No word of 'xqzt', which says what 'xqzt' means",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence_and_nothing_is_written(
    options: tuple[str, ...],
    code: int,
    said: str,
    texts_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(texts_path.parent)
    Path("unknown.txt").write_text("sport\nxqzt\n", "utf-8")
    error = " ".join(fail(code, "pretrain", texts_path, "-o", tmp_path / "m.onnx", *options, "--quiet").split())
    assert said in error
    assert not (tmp_path / "m.onnx").exists()
