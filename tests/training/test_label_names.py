"""What labels are called, and texts about them, teach where rows are few; none of it is held out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import textcls
from tests.training.helpers import Recorder
from textcls import Classifier, ConfigError, InputError
from textcls_training.config.settings import TrainConfig
from textcls_training.data.label_names import texts_of_names
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.pipeline.about_labels import NAMES_TEACH
from textcls_training.pipeline.training import train
from textcls_training.pipeline.training_report import TrainReport
from textcls_training.sklearn import TextClassifier

ROWS = {
    "late_delivery": ("where is my parcel", "still nothing in the post", "the van never came"),
    "refund_request": ("i want my money back", "please pay me back", "return the charge to my card"),
    "cancel_account": ("close everything i have", "i leave you for good", "delete me from your list"),
}
GIVEN = LabelledTexts(
    texts=[text for texts in ROWS.values() for text in texts],
    labels=[label for label, texts in ROWS.items() for _ in texts],
)


def trained(path: Path, given: LabelledTexts = GIVEN, **options: Any) -> tuple[Classifier, TrainReport, Sequence[str]]:
    callback = Recorder()
    config = TrainConfig(**{"vectors": "none", "epochs": 20, **options})
    report = train(given, path, config, callback=callback)
    return Classifier.load(path), report, callback.notes


def test_names_are_read_word_by_word_and_those_that_say_nothing_are_left_out() -> None:
    names = ["card_arrival", "RefundRequest", "comp.sys.mac", "Production > Shoe Machines", "体育", "0", "B2", "a-1"]
    assert dict(texts_of_names([*names, "label_1", "LABEL_2", "€5", "1…2"])) == {
        "card_arrival": "card arrival",
        "RefundRequest": "Refund Request",
        "comp.sys.mac": "comp sys mac",
        "Production > Shoe Machines": "Production Shoe Machines",
        "体育": "体育",
    }


def test_where_rows_are_few_the_words_of_a_label_answer_it_though_no_row_has_them(tmp_path: Path) -> None:
    classifier, report, notes = trained(tmp_path / "tickets.onnx")
    assert NAMES_TEACH in notes
    assert [classifier.predict(text).label for text in ("delivery", "refund", "cancel account")] == [*ROWS]
    assert report.rows == report.held_out_rows == len(GIVEN.texts)
    assert classifier.info.training["texts_about_labels"] == len(ROWS)
    apart, _, notes = trained(tmp_path / "apart.onnx", label_names="none")
    assert NAMES_TEACH not in notes
    assert "texts_about_labels" not in apart.info.training
    assert apart.explain("delivery").unknown
    assert not classifier.explain("delivery").unknown


def test_many_rows_are_taught_by_themselves_alone(tmp_path: Path) -> None:
    given = GIVEN.only([i % len(GIVEN.texts) for i in range(4 * len(GIVEN.texts))])
    *_, notes = trained(tmp_path / "tickets.onnx", given)
    assert NAMES_TEACH not in notes
    trained(tmp_path / "without.onnx", given, label_names="none")
    assert (tmp_path / "tickets.onnx").read_bytes() == (tmp_path / "without.onnx").read_bytes()


def test_names_teach_the_labels_of_few_rows_if_these_are_many_and_in_the_script_of_the_rows(tmp_path: Path) -> None:
    many = [label for label in GIVEN.labels if label != "cancel_account"] * 4
    given = LabelledTexts(texts=[f"row {i}" for i in range(len(many) + 3)], labels=[*many, *["cancel_account"] * 3])
    classifier, *_ = trained(tmp_path / "one.onnx", given, epochs=1)
    assert classifier.info.training["texts_about_labels"] == 1
    others = [f"{name} {i}" for name in ("first", "second") for i in range(12)]
    given = LabelledTexts(texts=[*given.texts, *others], labels=[*given.labels, *(text.split()[0] for text in others)])
    classifier, *_ = trained(tmp_path / "few.onnx", given, epochs=1)
    assert "texts_about_labels" not in classifier.info.training
    other = replace(GIVEN, texts=[f"体育新闻 {i}" for i in range(len(GIVEN.texts))])
    classifier, *_ = trained(tmp_path / "other.onnx", other, epochs=1)
    assert "texts_about_labels" not in classifier.info.training


def test_rows_with_weights_validation_rows_and_several_labels_are_followed_by_names_too(tmp_path: Path) -> None:
    weighed = LabelledTexts(texts=GIVEN.texts, labels=GIVEN.labels, weights=[2.0] * len(GIVEN.texts))
    several = LabelledTexts(texts=GIVEN.texts, label_sets=[{label: 1.0} for label in GIVEN.labels])
    for given in (weighed, several):
        classifier, report, notes = trained(tmp_path / "tickets.onnx", given)
        assert NAMES_TEACH in notes
        assert report.rows == len(GIVEN.texts)
        assert classifier.info.training["texts_about_labels"] == len(ROWS)
    report = train(GIVEN, tmp_path / "tickets.onnx", TrainConfig(vectors="none"), valid=GIVEN)
    assert (report.rows, report.held_out_rows) == (len(GIVEN.texts), len(GIVEN.texts))


def test_texts_about_labels_teach_however_many_rows_there_are_and_labels_without_one(tmp_path: Path) -> None:
    about = tmp_path / "about.csv"
    about.write_text("label,text\npraise,thank you this is wonderful\npraise,great work\nlate_delivery,courier\n")
    given = GIVEN.only([i % len(GIVEN.texts) for i in range(4 * len(GIVEN.texts))])
    classifier, report, notes = trained(tmp_path / "tickets.onnx", given, label_names=about)
    assert "'praise' has no row: only texts of label_names teach them." in notes
    assert classifier.labels == ("cancel_account", "late_delivery", "praise", "refund_request")
    assert [classifier.predict(text).label for text in ("wonderful", "courier")] == ["praise", "late_delivery"]
    assert report.rows == len(given.texts)
    assert classifier.info.training["texts_about_labels"] == 3


def test_files_about_labels_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*about\.csv"):
        trained(tmp_path / "tickets.onnx", label_names=tmp_path / "about.csv")
    (tmp_path / "about.json").write_text(json.dumps({"x" * 1001: "money"}))
    with pytest.raises(InputError, match=r"about\.json: the label 'xxxxxxxxxxxxxxxxxxxx' has 1,001 characters"):
        trained(tmp_path / "tickets.onnx", label_names=tmp_path / "about.json")
    (tmp_path / "about.csv").write_text("label,text\nrefund_request,money\n")
    with pytest.raises(ConfigError, match="label_names cannot be combined with prototypes"):
        trained(tmp_path / "tickets.onnx", label_names=tmp_path / "about.csv", head="prototypes")


@pytest.mark.parametrize("content", ["{}", '{"praise": " "}'])
def test_a_file_that_says_nothing_is_refused(tmp_path: Path, content: str) -> None:
    about = tmp_path / "about.json"
    about.write_text(content)
    with pytest.raises(InputError, match=r"about\.json"):
        trained(tmp_path / "tickets.onnx", label_names=about)


@pytest.mark.parametrize("label", ["apraise", "zpraise"])
def test_a_student_of_unlabelled_texts_learns_of_texts_about_labels_too(tmp_path: Path, label: str) -> None:
    about = tmp_path / "about.json"
    about.write_text(json.dumps({label: "thank you this is wonderful"}))
    texts = [UnlabelledText(f"please pay {i} back or close it") for i in range(30)]
    more = UnlabelledTexts.sample(texts, 100, GIVEN.texts)
    config = TrainConfig(vectors="none", epochs=20, label_names=about, unlabelled_weight=1.0)
    train(GIVEN, tmp_path / "tickets.onnx", config, unlabelled=more)
    classifier = Classifier.load(tmp_path / "tickets.onnx")
    assert classifier.labels == tuple(sorted([*ROWS, label]))
    assert classifier.predict("wonderful").label == label


def test_names_that_are_rows_do_not_answer_what_is_held_out(tmp_path: Path) -> None:
    names = [f"{colour}_{fruit}" for colour in ("red", "green", "dark") for fruit in ("apple", "cherry", "melon")]
    given = LabelledTexts(texts=[name.replace("_", " ") for name in names], labels=names)
    classifier, *_ = trained(tmp_path / "fruit.onnx", given)
    assert "texts_about_labels" not in classifier.info.training
    about = tmp_path / "about.json"
    about.write_text(json.dumps({"red_apple": "red apple", "plum": "red apple"}))
    classifier, *_ = trained(tmp_path / "fruit.onnx", given, label_names=about)
    assert classifier.info.training["texts_about_labels"] == 1


def test_rows_with_columns_are_followed_by_names_without_and_copies_are_left_out_there_too(tmp_path: Path) -> None:
    texts = [*GIVEN.texts, "late delivery"]
    rows = [{"text": text, "shop": "ab"[i % 2]} for i, text in enumerate(texts)]
    options: dict[str, Any] = {"columns": ["shop"], "epochs": 1, "vectors": "none"}
    with pytest.warns(UserWarning, match="Not calibrated"):
        textcls.train(rows, [*GIVEN.labels, "late_delivery"], tmp_path / "tickets.onnx", **options)
    assert Classifier.load(tmp_path / "tickets.onnx").info.training["texts_about_labels"] == len(ROWS) - 1


def test_names_weigh_as_the_rows_do_in_the_mean() -> None:
    weighed = replace(GIVEN, weights=[0.25] * 6 + [1.0] * 3)
    assert weighed.followed_by([("late_delivery", "late delivery")]).weights == [*[0.25] * 6, *[1.0] * 3, 0.5]


def test_the_file_tells_of_rows_alone_what_it_tells_of_rows(tmp_path: Path) -> None:
    classifier, *_ = trained(tmp_path / "tickets.onnx")
    apart, *_ = trained(tmp_path / "apart.onnx", label_names="none")
    lengths = [one.info.training["held_out"]["lengths"] for one in (classifier, apart)]
    assert lengths[0] == lengths[1]


def test_labels_of_a_file_are_read_as_those_of_the_rows(tmp_path: Path) -> None:
    about = tmp_path / "about.json"
    about.write_text(json.dumps({"Late_Delivery": "courier", "refund": "cash"}))
    given = replace(GIVEN, renamed={"refund": "refund_request"})
    classifier, _, notes = trained(tmp_path / "tickets.onnx", given, label_names=about)
    assert classifier.labels == tuple(sorted(ROWS))
    assert any("'Late_Delivery' as 'late_delivery'" in note for note in notes)


def test_audits_and_estimators_keep_to_the_labels_of_the_rows(tmp_path: Path) -> None:
    about = tmp_path / "about.json"
    about.write_text(json.dumps({"praise": "wonderful", "late_delivery": "courier"}))
    rows = [(f"{text} {i}", label) for i in range(4) for text, label in zip(GIVEN.texts, GIVEN.labels, strict=True)]
    texts, labels = zip(*rows, strict=True)
    assert textcls.audit_labels(texts, labels, label_names=about, epochs=1, vectors="none").rows == len(rows)
    estimator = TextClassifier(label_names=about, epochs=1, vectors="none").fit(texts, labels)
    assert Classifier.from_bytes(estimator.model_bytes_, "estimator").labels == tuple(sorted(ROWS))


def test_a_state_belongs_to_the_texts_about_labels(tmp_path: Path) -> None:
    about, state = tmp_path / "about.csv", tmp_path / "state"
    about.write_text("label,text\nrefund_request,money\n")
    config = TrainConfig(vectors="none", epochs=2, label_names=about)
    train(GIVEN, tmp_path / "tickets.onnx", config, state=state)
    about.write_text("label,text\nrefund_request,cash\n")
    with pytest.raises(ConfigError, match="the hash of label_names was"):
        train(GIVEN, tmp_path / "tickets.onnx", config, state=state)
