"""Training from Python: the same model as the command line's, and mistakes told in a sentence."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textcls
from tests.command_line import read_rows, succeed, write_rows
from textcls import Classifier, ConfigError, InputError, SurroundingsError
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import OPTIONS, TrainConfig, from_options

TEXTS = [f"{word} please {i}" for i in range(12) for word in ("refund", "parcel")]
LABELS = ["billing", "shipping"] * 12
SMALL: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "device": "cpu"}


def test_the_model_is_that_of_the_command_line(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *zip(TEXTS, LABELS, strict=True)])
    succeed("train", data, "--epochs", "2", "--dim", "3", "--size", "tiny", "--ngrams", "3", "--device", "cpu")
    rows = read_rows(data)
    options: dict[str, Any] = {"epochs": 2, "dim": 3, "size": "tiny", "ngrams": (3,), "device": "cpu"}
    found = textcls.train([r["text"] for r in rows], [r["label"] for r in rows], tmp_path / "api.onnx", **options)
    assert isinstance(found, Classifier)
    assert (tmp_path / "api.onnx").read_bytes() == (tmp_path / "rows.onnx").read_bytes()


def test_labels_are_taken_without_the_space_around_them_as_those_of_files_are(tmp_path: Path) -> None:
    plain = textcls.train(TEXTS, LABELS, tmp_path / "plain.onnx", **SMALL)
    spaced = textcls.train(TEXTS, [f" {label}\n" for label in LABELS], tmp_path / "spaced.onnx", **SMALL)
    assert spaced.graph.sha256 == plain.graph.sha256


def test_validation_rows_and_rationales_are_counted(tmp_path: Path) -> None:
    spans = [["refund"], None] * 12
    valid = (TEXTS[:6], LABELS[:6])
    found = textcls.train(TEXTS, LABELS, tmp_path / "m.onnx", valid=valid, rationales=spans, **SMALL)
    assert (found.info.training["held_out_rows"], found.info.training["rationales"]) == (6, 12)


def test_unlabelled_texts_and_their_probabilities_are_those_of_the_command_line(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *zip(TEXTS, LABELS, strict=True)])
    answers = {f"new {word} {i}": chance for i in range(9) for word, chance in (("refund", 0.75), ("parcel", 0.25))}
    table = [("text", "p_billing", "p_shipping"), *((text, str(p), str(1 - p)) for text, p in answers.items())]
    more = write_rows(tmp_path / "more.csv", table)
    options = ("--epochs", "1", "--dim", "2", "--ngrams", "none", "--device", "cpu", "--unlabelled-weight", "1")
    succeed("train", data, "--unlabelled", more, "--probabilities", "p_*", *options)
    mappings = [{"shipping": 1 - chance, "billing": chance} for chance in answers.values()]
    given: dict[str, Any] = {"unlabelled": [*answers], "probabilities": mappings, "unlabelled_weight": 1}
    found = textcls.train(TEXTS, LABELS, tmp_path / "api.onnx", **given, **SMALL)
    assert (tmp_path / "api.onnx").read_bytes() == (tmp_path / "rows.onnx").read_bytes()
    assert found.info.training["distillation"]["rows"] == 18


WORDS = {"billing": "refund", "shipping": "parcel"}
SETS = [sorted(WORDS)[: i % 3] for i in range(30)]
SET_TEXTS = [" ".join([*(WORDS[name] for name in labels), "please", str(i)]) for i, labels in enumerate(SETS)]


def test_several_labels_are_lists_sets_or_mappings_as_on_the_command_line(tmp_path: Path) -> None:
    rows = zip(SET_TEXTS, map(";".join, SETS), strict=True)
    data = write_rows(tmp_path / "rows.csv", [("text", "label"), *rows])
    options = ("--epochs", "1", "--dim", "2", "--ngrams", "none", "--device", "cpu")
    succeed("train", data, "--label-separator", ";", *options)
    told = Classifier.load(tmp_path / "rows.onnx").info
    assert told.training["labels_written"] == {"label_separator": ";", "label_columns": []}
    given: list[Any] = [
        SETS,
        [set(labels) for labels in SETS],
        [dict.fromkeys(labels, 1.0) for labels in SETS],
        [np.array(labels, object) for labels in SETS],  # as pandas reads them from Parquet
    ]
    for i, labels in enumerate(given):
        found = textcls.train(SET_TEXTS, labels, tmp_path / f"{i}.onnx", **SMALL)
        assert found.info.several
        training = {**found.info.training, "labels_written": told.training["labels_written"]}
        assert found.info.to_json() | {"training": training} == told.to_json()
    assert (tmp_path / "0.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()
    assert {"held_out_micro_f1", "held_out_macro_f1", "held_out_break_even"} <= set(found.info.training)


def test_weights_count_and_a_target_moves_thresholds(tmp_path: Path) -> None:
    valid: Any = (SET_TEXTS * 2, SETS * 2)
    options: dict[str, Any] = {**SMALL, "epochs": 3, "valid": valid}
    usual = textcls.train(SET_TEXTS, SETS, tmp_path / "usual.onnx", **options)
    weighted = textcls.train(SET_TEXTS, SETS, tmp_path / "m.onnx", weights=[2.0, *[1.0] * 29], **options)
    assert usual.info.training["data_sha256"] != weighted.info.training["data_sha256"]
    assert usual.info.bias != weighted.info.bias
    wide = textcls.train(SET_TEXTS, SETS, tmp_path / "wide.onnx", target_recall=1.0, **options)
    found = textcls.evaluate(wide, zip(*valid, strict=True))
    # What was chosen on these rows finds them all, and is of no other model.
    assert [label.recall for label in found.report.labels] == [1, 1]
    assert wide.info.thresholds != usual.info.thresholds
    assert wide.info.bias == usual.info.bias
    heavy = textcls.train(SET_TEXTS, SETS, tmp_path / "h.onnx", class_weight={"shipping": 4}, **options)
    assert heavy.info.training["class_weight"] == {"billing": 1.0, "shipping": 4.0}
    assert heavy.info.bias != usual.info.bias


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"labels": LABELS[1:]}, InputError, "There are 24 texts and 23 labels; give one label per text."),
        ({"texts": [*TEXTS[1:], None]}, InputError, "Texts: number 23 is not a string but NoneType."),
        (
            {"labels": [*LABELS[1:], 3]},
            InputError,
            "23 is not a string but int; answers name labels by strings, so give str(label).",
        ),
        *(
            ({"labels": [*LABELS[1:], n]}, InputError, "Labels: number 23 is missing; leave out")
            for n in (None, math.nan)
        ),
        ({"labels": [*LABELS[1:], " "]}, InputError, "Labels: number 23 is empty."),
        ({"valid": (TEXTS, [*LABELS[1:], None])}, InputError, "Labels of valid: number 23 is missing; leave out"),
        ({"valid": ([], [])}, InputError, "There are no rows in valid: give some, or leave it out."),
        ({"texts": "one text"}, InputError, "The texts and their labels are two sequences of strings, not one string."),
        (
            {"labels": [["x"], *LABELS[1:]]},
            InputError,
            "Labels: number 1 is the string 'shipping', where others are lists; write ['shipping'].",
        ),
        ({"labels": [["x"], *[None] * 23]}, InputError, "Labels: number 1 is of type NoneType, not a list of labels."),
        ({"labels": [{"x": 1.5}, *[[]] * 23]}, InputError, "Labels: those of number 0 "),
        ({"weights": [1.0]}, InputError, "There are 24 texts and 1 weights; give one per text."),
        ({"weights": [-1.0] * 24}, InputError, "Weights: number 0 is '-1.0'; write a number of 0 or more."),
        ({"class_weight": {"z": 2}}, ConfigError, "class_weight has a weight for 'z', which no training row"),
        ({"target_precision": 0.9}, ConfigError, "A target precision needs rows with several labels"),
        ({"labels": ["x"] * 24}, InputError, "have only the label 'x'"),
        ({"rationales": 3}, InputError, "The rationales are not a sequence but int"),
        ({"rationales": [None]}, InputError, "There are 24 texts and 1 rationales"),
        ({"rationales": [*[None] * 23, ["card"]]}, InputError, "rationales[23]: the text does not contain 'card'"),
        (
            {"texts": iter([*TEXTS, "one more"])},
            InputError,
            "There are 25 texts and 24 labels; give one label per text.",
        ),
        ({"texts": None}, InputError, "The texts are not a sequence but NoneType: pass a list of them."),
        ({"unlabelled": "abc"}, InputError, "The unlabelled texts are one string: pass a list of them, as in [text]."),
        ({"unlabelled": ["a", 3]}, InputError, "Unlabelled texts: number 1 is not a string but int."),
        (
            {"unlabelled": ["refund please 1"]},
            InputError,
            "There are no unlabelled texts, only duplicates of labelled ones",
        ),
        ({"probabilities": []}, ConfigError, "probabilities needs the texts they belong to; pass those as unlabelled."),
        ({"unlabelled": ["a"], "probabilities": []}, InputError, "There are 1 unlabelled texts and 0 probabilities"),
        (
            {"unlabelled": ["a"], "probabilities": [{"billing": 1.0}]},
            InputError,
            "probabilities[0] has no probability of 'shipping'; give one of each label.",
        ),
        ({"teacher": "x"}, ConfigError, "A teacher needs unlabelled texts to label, and there are none; give some, or"),
        ({"teacher": ""}, ConfigError, "teacher must be a name or a path, not ''."),
        (
            {"unlabelled_weight": 1},
            ConfigError,
            "unlabelled_weight needs unlabelled; pass that as well, or leave it out.",
        ),
        ({"rehearsal_rows": 9}, ConfigError, "rehearsal_rows needs state; pass that as well, or leave it out."),
        ({"unlabelled_rows": 0}, ConfigError, "unlabelled_rows must be at least 1, not 0."),
        ({"unlabelled_weight": -1}, ConfigError, "unlabelled_weight must be a finite number from 0, not -1."),
        ({"epoch": 3}, ConfigError, "Training has no option 'epoch'; did you mean 'epochs'?"),
        ({"colour": 3}, ConfigError, "Training has no option 'colour'; there are attention, batch_size, bigrams, "),
        ({"size": "big"}, ConfigError, "size must be one of tiny, small, default, full, not 'big'."),
        ({"mixing": "big"}, ConfigError, "mixing must be one of none, pool, "),
        ({"epochs": 0}, ConfigError, "epochs must be at least 1, not 0."),
        ({"rationale_weight": -1}, ConfigError, "rationale_weight must be a finite number from 0, not -1."),
        ({"output": "no/m.onnx"}, SurroundingsError, "does not exist"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    change: dict[str, Any], error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"texts": TEXTS, "labels": LABELS, "output": "m.onnx", **SMALL, **change}
    with pytest.raises(error, match=re.escape(said)):
        textcls.train(**given)
    assert list(tmp_path.iterdir()) == []


def test_without_the_packages_for_training_one_sentence_says_what_to_install() -> None:
    code = """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numba":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hook())
import textcls
try:
    textcls.train(["a", "b"], ["x", "y"], "m.onnx")
except textcls.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = (
        "textcls.train needs the package 'numba', which is not installed (about 440 MB); "
        'run: pip install "textcls[train]"\n'
    )
    assert (done.stdout, done.stderr) == (said, "")


def test_texts_may_come_one_at_a_time(tmp_path: Path) -> None:
    textcls.train(TEXTS, LABELS, tmp_path / "list.onnx", **SMALL)
    texts: Any = iter(TEXTS)
    labels: Any = iter(LABELS)
    textcls.train(texts, labels, tmp_path / "iterator.onnx", **SMALL)
    assert (tmp_path / "list.onnx").read_bytes() == (tmp_path / "iterator.onnx").read_bytes()


def test_options_of_nothing_are_the_defaults() -> None:
    texts = ["a b", "c"]
    plain = resolve(TrainConfig(), texts, 3, 2)
    assert resolve(from_options({}), texts, 3, 2) == plain
    assert resolve(from_options(dict.fromkeys(OPTIONS)), texts, 3, 2) == plain


def test_rows_that_hold_their_labels_or_differ_in_their_columns_are_refused(tmp_path: Path) -> None:
    leaking = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    with pytest.raises(InputError, match="the column 'label' holds the labels themselves; leave it out of the rows"):
        textcls.train(leaking, LABELS, tmp_path / "m.onnx")
    with pytest.raises(InputError, match="number 0 is a str, and others are rows of 'text'"):
        textcls.train([{"text": text} for text in TEXTS], LABELS, tmp_path / "m.onnx", valid=(["a"], ["billing"]))
    rows = [{"body": text} | ({"subject": "hi"} if i == 3 else {}) for i, text in enumerate(TEXTS)]
    with pytest.raises(InputError, match="number 3 has 'subject', and the first row has not"):
        textcls.train(rows, LABELS, tmp_path / "m.onnx")
    for wrong in (LABELS, {"text": TEXTS}):
        with pytest.raises(InputError, match="valid is a pair"):
            textcls.train(TEXTS, LABELS, tmp_path / "m.onnx", valid=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="output is the name of the file to write, not NoneType"):
        textcls.train(TEXTS, LABELS, None)  # type: ignore[arg-type]


def test_a_row_of_weight_0_is_as_if_it_was_not_there(tmp_path: Path) -> None:
    others = [text.upper() for text in TEXTS[:6]]
    weights = [1.0] * len(TEXTS) + [0.0] * 6
    found = textcls.train([*TEXTS, *others], [*LABELS, *LABELS[6:12]], tmp_path / "m.onnx", weights=weights, **SMALL)
    textcls.train(TEXTS, LABELS, tmp_path / "n.onnx", weights=[1.0] * len(TEXTS), **SMALL)
    assert (tmp_path / "m.onnx").read_bytes() == (tmp_path / "n.onnx").read_bytes()
    assert found.info.training["rows"] == len(TEXTS)


def test_columns_that_give_the_label_away_and_balanced_weights_of_several_labels_are_warned_of(tmp_path: Path) -> None:
    words = {"parcel": "a", "card": "b"}
    rows = [{"text": f"{word} {i}", "told": label} for i in range(20) for word, label in words.items()]
    labels = [row["told"] for row in rows]
    small: dict[str, Any] = {"epochs": 1, "vectors": "none", "ngrams": "none", "dim": 8}
    with pytest.warns(UserWarning, match="The column 'told' alone gives away the label of 100% of the rows"):
        textcls.train(rows, labels, tmp_path / "a.onnx", columns=["told"], **small)
    texts, sets = [row["text"] for row in rows], [[label] for label in labels]
    with pytest.warns(UserWarning, match="Balanced weights rank rare labels worse"):
        textcls.train(texts, sets, tmp_path / "b.onnx", class_weight="balanced", **small)
