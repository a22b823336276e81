"""`textcls pretrain --objective mutual-information`, and `textcls clusters`, which shows what came of it."""

import json
import re
from pathlib import Path

import pytest

from tests.command_line import fail, read_rows, succeed, write_rows
from tests.training.pretraining.topics import TOPICS, topic_texts
from textcls import Classifier

pytest.importorskip("torch", reason="clusters are learned with PyTorch")
LEARN = ("--objective", "mutual-information", "--clusters", "3", "--quiet")


@pytest.fixture(scope="module")
def texts_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of three topics, with these beside them in a column `label`."""
    rows = zip(*topic_texts(240), strict=True)
    return write_rows(tmp_path_factory.mktemp("topics") / "texts.csv", [("text", "label"), *rows])


@pytest.fixture(scope="module")
def learned(texts_path: Path) -> tuple[Path, str]:
    """A model of three clusters of these texts, and what was printed."""
    path = texts_path.with_name("topics.onnx")
    return path, succeed("pretrain", texts_path, "--output", path, *LEARN)


@pytest.fixture(scope="module")
def topics(learned: tuple[Path, str]) -> Path:
    """The model."""
    return learned[0]


def test_what_is_learned_are_the_topics_and_the_model_is_as_any_other(topics: Path) -> None:
    classifier = Classifier.load(topics)
    texts, names = topic_texts(60, seed=9)
    answers = classifier.predict(texts, explain=True)
    for label in classifier.labels:
        (topic,) = {name for name, answer in zip(names, answers, strict=True) if answer.label == label}
        assert set(label.split("/")) <= set(TOPICS[topic].split())
    assert all(answer.explanation and answer.explanation.completeness_error < 1e-4 for answer in answers)


def test_learning_says_how_large_clusters_are_and_what_views_of_a_text_share(learned: tuple[Path, str]) -> None:
    path, output = learned
    assert "228 texts in 3 clusters, 75 epochs." in output
    assert re.search(r"Two halves of a held-out text \(12\) share 0\.\d\d nats, out of 1\.10 at most", output)
    assert "The vectors of" in output
    assert f"Next: textcls clusters {path}" in output


def test_inspect_says_that_nobody_gave_labels(topics: Path) -> None:
    assert re.search(
        r"held out +12 rows, no labels; two halves of a text share 0\.\d\d nats", succeed("inspect", topics)
    )


def test_the_same_texts_and_seed_give_the_same_bytes(topics: Path, texts_path: Path, tmp_path: Path) -> None:
    succeed("pretrain", texts_path, "--output", tmp_path / "again.onnx", *LEARN)
    assert (tmp_path / "again.onnx").read_bytes() == topics.read_bytes()


def test_too_few_texts_for_so_many_clusters_are_refused_before_the_work(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "few.csv", [("text",), *((f"text {i}",) for i in range(10))])
    error = fail(3, "pretrain", data, "-o", tmp_path / "few.onnx", "--objective", "mutual-information")
    assert "9 different texts to learn 20 clusters from; give at least 40, or ask for fewer clusters." in error
    assert not (tmp_path / "few.onnx").exists()


def test_clusters_belong_to_their_objective(texts_path: Path, tmp_path: Path) -> None:
    error = fail(2, "pretrain", texts_path, "-o", tmp_path / "x.vectors", "--clusters", "3")
    assert "clusters is an option of the objective mutual-information" in error


def test_clusters_are_shown_with_size_words_and_example_beside_hidden_labels(topics: Path, texts_path: Path) -> None:
    output = succeed("clusters", topics, texts_path)
    assert "240 texts in 3 clusters." in output
    assert "Beside the 3 labels of 240 rows: accuracy 100.0%" in output
    for label in Classifier.load(topics).labels:
        assert re.search(rf"^{label} +\d\d +3\d\.\d% +[01]\.\d\d +(sport|money|kitchen) ", output, re.MULTILINE)


def test_without_labels_no_agreement_is_claimed(topics: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "new.csv", [("text",), ("the goal of the match",), ("butter in the oven",)])
    output = succeed("clusters", topics, data)
    assert "2 texts in 2 clusters; 1 more of the model has none of them." in output
    assert "Beside" not in output


def test_the_page_has_words_and_examples_and_runs_nothing(topics: Path, texts_path: Path, tmp_path: Path) -> None:
    page = tmp_path / "clusters.html"
    assert succeed("clusters", topics, texts_path, "--output", page) == f"240 texts, 3 clusters -> {page}\n"
    html = page.read_text("utf-8")
    assert html.count('<li dir="auto">') == 15
    assert all(label in html for label in Classifier.load(topics).labels)
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_texts_are_escaped_on_the_page(topics: Path, tmp_path: Path) -> None:
    texts = [("text",), *((f"<script>alert({i})</script> & match goal",) for i in range(12))]
    succeed("clusters", topics, write_rows(tmp_path / "evil.csv", texts), "-o", tmp_path / "evil.html")
    html = (tmp_path / "evil.html").read_text("utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(" in html


def test_json_has_clusters_and_agreement(topics: Path, texts_path: Path) -> None:
    found = json.loads(succeed("clusters", topics, texts_path, "--json", "--examples", "2"))
    assert [len(cluster["examples"]) for cluster in found["clusters"]] == [2, 2, 2]
    assert sum(cluster["texts"] for cluster in found["clusters"]) == found["texts"] == 240
    assert found["agreement"]["nmi"] == pytest.approx(1)


def test_clusters_become_labels_under_new_names(topics: Path, texts_path: Path, tmp_path: Path) -> None:
    first, second, third = Classifier.load(topics).labels
    names, labelled = tmp_path / "names.json", tmp_path / "labelled.csv"
    names.write_text(json.dumps({first: "one", second: "others", third: None}))
    succeed("clusters", topics, texts_path, "--assign", labelled, "--names", names)
    assert {row["label"] for row in read_rows(labelled)} == {"one", "others"}
    assert len(read_rows(labelled)) == 160


def test_texts_below_the_threshold_are_not_assigned(topics: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "new.csv", [("text",), ("goal match team coach league",), ("zzz",)])
    said = succeed("clusters", topics, data, "--assign", tmp_path / "sure.csv", "--threshold", "0.6")
    assert [row["text"] for row in read_rows(tmp_path / "sure.csv")] == ["goal match team coach league"]
    assert "1 text of 2 with their clusters as labels" in said
    assert "All have one label, and training needs two." in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "must hold clusters with their new names"),
        ("{", "cannot be read as JSON"),
        ('{"nothing": "x"}', "The model has no label 'nothing'"),
    ],
)
def test_names_that_make_no_sense_are_refused_and_nothing_is_written(
    topics: Path, texts_path: Path, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "names.json").write_text(content)
    call = ("clusters", topics, texts_path, "--assign", tmp_path / "out.csv", "--names", tmp_path / "names.json")
    assert words in fail(2, *call)
    assert not (tmp_path / "out.csv").exists()


def test_names_and_threshold_need_a_file_to_assign_to(topics: Path, texts_path: Path) -> None:
    assert "--threshold needs --assign and a file." in fail(2, "clusters", topics, texts_path, "--threshold", "0.5")


def test_any_model_of_one_label_a_text_has_clusters_and_one_of_several_has_none(
    model_path: Path, several_labels_path: Path, texts_path: Path
) -> None:
    assert re.match(r"240 texts in \d clusters", succeed("clusters", model_path, texts_path))
    assert "several labels" in fail(2, "clusters", several_labels_path, texts_path)


def test_a_file_without_rows_is_an_error_and_nothing_is_written(topics: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "empty.csv", [("text",)])
    assert "has no rows" in fail(3, "clusters", topics, data, "--assign", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
