"""Training goes on from a finished one: with what it has learned, new rows, and new labels."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command_line import fail, run, succeed, write_rows
from tests.training.helpers import Recorder
from textcls import Classifier
from textcls.errors import ConfigError, InputError
from textcls.evaluation.learned_rows import LearnedRows
from textcls.model.learned_texts import LearnedTexts
from textcls_training.config.settings import TrainConfig, from_options
from textcls_training.data.corpus import Corpus
from textcls_training.data.counting import counts_of
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.callbacks import Callback
from textcls_training.pipeline import training as pipeline
from textcls_training.pipeline.continuing import Continuation
from textcls_training.state import folder
from textcls_training.state.finished import Finished

CONFIG = TrainConfig(dim=8, epochs=6, vectors="none", rehearsal_rows=60)
OLD, NEW = ("billing", "returns", "shipping"), "refunds"


def rows_of(labels: Sequence[str], count: int, seed: int) -> LabelledTexts:
    """Rows of which one word of twenty a label tells it, and the others nothing."""
    draw = random.Random(seed)
    texts = []
    for i in range(count):
        words = [f"word{draw.randrange(200)}" for _ in range(5)]
        words[draw.randrange(5)] = f"{labels[i % len(labels)]}{draw.randrange(20)}"
        texts.append(" ".join(words))
    return LabelledTexts(texts=texts, labels=[labels[i % len(labels)] for i in range(count)])


FIRST, SECOND = rows_of(OLD, 600, 1), rows_of((OLD[0], NEW), 200, 2)
Train = Callable[..., Path]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Train and return the file, which is called after the state."""

    def train(rows: LabelledTexts, config: TrainConfig = CONFIG, *, state: str, before: str | None = None) -> Path:
        output = tmp_path / f"{state}.onnx"
        start = None if before is None else tmp_path / before
        pipeline.train(rows, output, config, state=tmp_path / state, from_state=start)
        return output

    return train


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a training on `FIRST`, of which a tenth is kept."""
    path = tmp_path_factory.mktemp("first") / "state"
    pipeline.train(FIRST, path.with_suffix(".onnx"), CONFIG, state=path)
    return path


def go_on(first: Path, output: Path, rows: LabelledTexts = SECOND, **told: Any) -> Classifier:
    config = TrainConfig(**{"rehearsal_rows": 60, **told})
    pipeline.train(rows, output, config, from_state=first)
    return Classifier.load(output)


def accuracy(model: Classifier, rows: LabelledTexts) -> float:
    answers = [answer.label for answer in model.predict(rows.texts)]
    return float(np.mean([a == b for a, b in zip(answers, rows.labels, strict=True)]))


def test_a_state_that_holds_all_rows_goes_on_to_the_bytes_of_a_training_on_all_rows(
    train: Train, tmp_path: Path
) -> None:
    config = replace(CONFIG, rehearsal_rows=20_000, epochs=2)
    train(FIRST, config, state="first")
    found = train(SECOND, TrainConfig(), state="second", before="first")
    both = LabelledTexts(texts=[*FIRST.texts, *SECOND.texts], labels=[*FIRST.labels, *SECOND.labels])
    pipeline.train(both, tmp_path / "both.onnx", config)
    assert found.read_bytes() == (tmp_path / "both.onnx").read_bytes()
    assert {path.name for path in (tmp_path / "second").iterdir()} == {"finished.npz", "lock", "training.json"}


def test_a_new_label_is_learned_and_old_ones_are_not_forgotten(first: Path, tmp_path: Path) -> None:
    model = go_on(first, tmp_path / "m.onnx")
    assert model.labels == ("billing", "refunds", "returns", "shipping")
    assert accuracy(model, rows_of((NEW,), 60, 3)) > 0.9
    assert accuracy(model, rows_of(OLD, 120, 4)) > 0.9
    assert model.info.training["continued"] == {"rows": 600, "rehearsed": 60}
    assert "a training on 600 rows, 60 of them rehearsed" in succeed("inspect", tmp_path / "m.onnx")


def test_words_that_no_row_at_hand_holds_are_still_known(first: Path, tmp_path: Path) -> None:
    state = Finished.load(first)
    at_hand = {word for text in [*state.rehearsal.rows.texts, *SECOND.texts] for word in text.split()}
    words = [f"{label}{i}" for label in OLD[1:] for i in range(20) if f"{label}{i}" not in at_hand]
    assert len(words) >= 3
    model = go_on(first, tmp_path / "m.onnx")
    answers = model.predict(words)
    assert [answer.label for answer in answers] == [word.rstrip("0123456789") for word in words]


def test_without_rehearsal_no_text_is_kept_and_labels_without_rows_stay(train: Train, tmp_path: Path) -> None:
    none = replace(CONFIG, rehearsal_rows=0)
    train(FIRST, none, state="first")
    assert Finished.load(tmp_path / "first").rehearsal.rows.texts == []
    assert FIRST.texts[0].encode() not in b"".join(path.read_bytes() for path in (tmp_path / "first").iterdir())
    model = go_on(tmp_path / "first", tmp_path / "m.onnx", rehearsal_rows=0)
    assert set(model.labels) == {*OLD, NEW}
    assert accuracy(model, rows_of((NEW,), 60, 3)) > 0.8


def test_counts_are_those_of_all_rows_that_there_ever_were(train: Train, tmp_path: Path) -> None:
    train(FIRST, state="first")
    train(SECOND, TrainConfig(rehearsal_rows=60), state="second", before="first")
    found = Finished.load(tmp_path / "second")
    every = counts_of(Corpus.of([*FIRST.texts, *SECOND.texts], 2048))
    assert found.counts is not None
    assert (found.facts.rows, found.counts.texts) == (800, 800)
    assert dict(zip(found.counts.types, found.counts.count.tolist(), strict=True)) == dict(
        zip(every.types, every.count.tolist(), strict=True)
    )
    assert found.counts.pair.tolist() == every.pair.tolist()
    assert found.counts.pair_count.tolist() == every.pair_count.tolist()


def test_all_rows_that_there_ever_were_are_known_as_learned(first: Path, tmp_path: Path) -> None:
    third, state, notes = rows_of(OLD, 100, 7), tmp_path / "second", Recorder()
    pipeline.train(SECOND, state.with_suffix(".onnx"), state=state, from_state=first)
    pipeline.train(third, tmp_path / "third.onnx", valid=FIRST, from_state=state, callback=notes)
    info = Classifier.load(tmp_path / "third.onnx").info
    every = LearnedTexts.of([*FIRST.texts, *SECOND.texts, *third.texts])
    assert LearnedTexts.of_model(info) == every._replace(recurring=0.0)
    judged = LearnedRows(info)
    for text in FIRST.texts:
        judged.add(text)
    assert judged.share == 1
    told = [note for note in notes.notes if "promise too much" in note]
    pipeline.train(third, tmp_path / "third.onnx", valid=rows_of(OLD, 60, 8), from_state=state, callback=notes)
    assert told == [note for note in notes.notes if "promise too much" in note]
    assert told == [
        f"About 100% of the validation texts were learned from before ({state}), so they promise too much: name others."
    ]


def test_rows_of_one_new_label_are_no_mistake_where_a_training_goes_on(tmp_path: Path, sample_path: Path) -> None:
    quick = ("--epochs", "1", "--vectors", "none", "--size", "small")
    succeed("train", sample_path, "--state", tmp_path / "s", "-o", tmp_path / "a.onnx", *quick)
    rows = write_rows(tmp_path / "new.csv", [("text", "label"), *((f"I praise lamp {i}", "praise") for i in range(30))])
    result = run("train", rows, "--from", tmp_path / "s", "-o", tmp_path / "b.onnx", "--state", tmp_path / "t")
    assert "training needs at least two labels" not in result.stderr
    assert "praise" in Classifier.load(tmp_path / "b.onnx").labels


def test_names_that_labels_had_are_known_where_a_training_goes_on(tmp_path: Path, sample_path: Path) -> None:
    names = write_rows(tmp_path / "map.csv", [("label", "new_label"), ("account", "people"), ("sales", "shop")])
    quick = ("--epochs", "1", "--vectors", "none", "--size", "small")
    succeed("train", sample_path, "--label-map", names, "--state", tmp_path / "s", "-o", tmp_path / "a.onnx", *quick)
    result = run("train", sample_path, "--from", tmp_path / "s", "-o", tmp_path / "b.onnx", "--state", tmp_path / "t")
    assert "'account'" in result.stderr
    assert "new label" not in result.stderr
    for model in ("a.onnx", "b.onnx"):
        info = Classifier.load(tmp_path / model).info
        assert {"people", "shop"} <= {*info.labels}
        assert info.training["labels_renamed"] == {"account": "people", "sales": "shop"}
    again = run("train", sample_path, "--from", tmp_path / "t", "--label-map", names, "-o", tmp_path / "c.onnx")
    assert "is to be renamed" not in again.stderr
    assert Classifier.load(tmp_path / "c.onnx").labels == Classifier.load(tmp_path / "b.onnx").labels
    # Validation rows and weights of labels are read as the rows are, and another map adds to the names.
    write_rows(names, [("label", "new_label"), ("billing", "money")])
    (tmp_path / "weights.json").write_text('{"account": 2, "shop": 3}')
    more = ("--valid", sample_path, "--label-map", names, "--class-weight", tmp_path / "weights.json", "-q")
    told = run("train", sample_path, "--from", tmp_path / "t", "-o", tmp_path / "d.onnx", *more[:-1])
    assert told.exit_code == 0
    assert "keep the label 'billing': --label-map renames labels of DATA alone" in told.stderr.replace("\n", " ")
    info = Classifier.load(tmp_path / "d.onnx").info
    assert {"people", "shop", "money"} <= {*info.labels}
    assert "account" not in info.labels
    assert info.training["class_weight"]["people"] == 2
    assert "billing" not in info.training["labels_renamed"]  # rows of before have that label


def test_a_split_holds_out_the_rows_that_it_held_out_before(first: Path) -> None:
    finished = Finished.load(first)
    dataset, splits, part = Continuation(finished, SECOND, TrainConfig()).datasets(None)
    kept = len(finished.rehearsal.rows.texts)
    assert part[:kept].tolist() == finished.rehearsal.part.tolist()
    assert len(splits) == finished.facts.splits == 5
    for i, split in enumerate(splits):
        assert split.valid.labels.tolist() == dataset.labels[part == i].tolist()
        assert len(split.valid.labels) > len(SECOND.texts) / 6


def test_a_training_that_goes_on_goes_on_after_a_kill_to_the_same_bytes(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "EVERY_SECONDS", 0)
    monkeypatch.setattr(folder, "WRITING_SHARE", 0)
    output, notes = tmp_path / "m.onnx", []

    class Stopping(Callback):
        def __init__(self, last: int) -> None:
            self._last = last

        def note(self, text: str) -> None:
            notes.append(text)

        def epoch(self, number: int, score: object) -> None:
            if number == self._last:
                raise KeyboardInterrupt

    def go_on_in(state: str, last: int = 99) -> bytes:
        config = TrainConfig(rehearsal_rows=60)
        pipeline.train(SECOND, output, config, state=tmp_path / state, from_state=first, callback=Stopping(last))
        return output.read_bytes()

    whole = go_on_in("whole")
    with pytest.raises(KeyboardInterrupt):
        go_on_in("killed", last=2)
    assert go_on_in("killed") == whole
    assert notes[
        0
    ] == f"Going on from {first}: 60 of its 600 rows are rehearsed, beside 200 new ones, with the new " + (
        "label 'refunds'."
    )
    assert any(note.startswith(("Going on in epoch", "Going on after epoch")) for note in notes)


@pytest.mark.parametrize("several", [False, True])
def test_a_training_that_has_ended_ends_in_the_same_bytes_when_it_is_called_again(train: Train, several: bool) -> None:
    rows = replace(FIRST, labels=(), label_sets=[{label: 1.0} for label in FIRST.labels]) if several else FIRST
    once = train(rows, state="first").read_bytes()
    assert train(rows, state="first").read_bytes() == once
    new = rows.only(list(range(100)))
    gone_on = train(new, TrainConfig(rehearsal_rows=60), state="second", before="first").read_bytes()
    assert train(new, TrainConfig(rehearsal_rows=60), state="second", before="first").read_bytes() == gone_on


def test_several_labels_a_text_go_on_too(train: Train, tmp_path: Path) -> None:
    def sets(rows: LabelledTexts) -> LabelledTexts:
        return replace(rows, labels=(), label_sets=[{label: 1.0} for label in rows.labels])

    train(sets(FIRST), state="first")
    model = Classifier.load(train(sets(SECOND), TrainConfig(), state="second", before="first"))
    answers = model.predict(rows_of((NEW, OLD[0]), 60, 3).texts)
    assert model.labels == ("billing", "refunds", "returns", "shipping")
    assert sum(NEW in answer.assigned for answer in answers[::2]) > 20
    with pytest.raises(InputError, match="have several labels a text, and the new ones one label a text"):
        train(SECOND, TrainConfig(), state="third", before="first")


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"dim": 16}, r"dim is 8 in .*, and what it has learned is for that alone; leave it out\."),
        ({"mixing": "gmlp"}, r"mixing is none in .*; leave it out\."),
    ],
)
def test_an_option_that_asks_for_another_model_is_refused(
    first: Path, tmp_path: Path, told: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        go_on(first, tmp_path / "m.onnx", **told)


def test_options_that_are_not_given_are_those_of_the_training_before(first: Path) -> None:
    found = Continuation(Finished.load(first), SECOND, TrainConfig(seed=3)).config
    assert (found.dim, found.epochs, found.seed, found.rehearsal_rows) == (8, 6, 3, 60)


def test_an_option_that_is_given_wins_even_if_it_is_the_default(train: Train, tmp_path: Path) -> None:
    told = replace(CONFIG, epochs=1, seed=5, max_tokens=5, head="prototypes", rehearsal_rows=1000)
    train(FIRST, told, state="told")
    before = Finished.load(tmp_path / "told")
    kept = Continuation(before, SECOND, from_options({})).config
    assert (kept.seed, kept.max_tokens, kept.head) == (5, 5, "prototypes")
    anew = Continuation(before, SECOND, from_options({"seed": 0, "max_tokens": 2048, "head": "linear"})).config
    assert (anew.seed, anew.max_tokens, anew.head) == (0, 2048, "linear")


def test_options_given_on_the_command_line_win_even_if_they_are_defaults(tmp_path: Path, sample_path: Path) -> None:
    state, options = tmp_path / "S", ("--epochs", "1", "--vectors", "none", "-q")
    succeed("train", sample_path, "-o", tmp_path / "a.onnx", "--state", state, "--max-tokens", "5", *options)
    more = ("--from", state, "-q", "-o", tmp_path / "b.onnx")
    succeed("train", sample_path, *more)
    assert Classifier.load(tmp_path / "b.onnx").info.max_tokens == 5
    succeed("train", sample_path, *more, "--max-tokens", "2048")
    assert Classifier.load(tmp_path / "b.onnx").info.max_tokens == 2048


def test_rates_that_are_told_are_those_of_the_training_that_goes_on(first: Path, tmp_path: Path) -> None:
    usual = go_on(first, tmp_path / "usual.onnx")
    learned, rates = [usual.path.read_bytes()], list[dict[str, Any]]([{"table_rate": 0.003}, {"head_rate": 0.003}])
    for told in rates:
        learned.append(go_on(first, tmp_path / "told.onnx", **told).path.read_bytes())
    assert len(set(learned)) == 3


def test_what_cannot_be_gone_on_from_is_said(first: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.onnx"
    with pytest.raises(InputError, match="is not there"):
        go_on(tmp_path / "no", output)
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "training.json").write_text("{}")
    with pytest.raises(InputError, match="has not finished; give its command once more"):
        go_on(tmp_path / "half", output)
    with pytest.raises(ConfigError, match="is the training that this one continues; name another folder"):
        pipeline.train(SECOND, output, state=first, from_state=first)
    for damaged in ("finished.npz", "all-rows.npz"):
        copy = tmp_path / f"copy-{damaged}"
        copy.mkdir()
        for path in first.iterdir():
            content = path.read_bytes()
            (copy / path.name).write_bytes(content[:-50] if path.name == damaged else content)
        with pytest.raises(InputError, match=rf"{damaged} is damaged; it is not as it was written\."):
            go_on(copy, output)
    assert not output.exists()


def test_no_training_goes_on_from_one_whose_state_does_not_hold_what_it_takes(train: Train, tmp_path: Path) -> None:
    spans = [((0, 4),) for _ in FIRST.texts]
    rows = replace(FIRST, rationales=spans)
    told = replace(CONFIG, epochs=1, rehearsal_rows=1000)
    report = pipeline.train(rows, tmp_path / "first.onnx", told, state=tmp_path / "first")
    assert report.cannot_go_on == "it has learned from rationales"
    with pytest.raises(InputError, match="it has learned from rationales; train on all rows again"):
        go_on(tmp_path / "first", tmp_path / "m.onnx")


def test_weights_go_on_and_what_does_not_is_told(tmp_path: Path) -> None:
    rows = [(f"the {animal} number {i}", animal, "1") for i in range(30) for animal in ("cat", "dog")]
    first = write_rows(tmp_path / "first.csv", [("text", "label", "trust"), *rows])
    more = [(f"a zebra {i}", "dog" if i % 2 else "cat", str(i % 2)) for i in range(40)]
    second = write_rows(tmp_path / "second.csv", [("text", "label", "trust"), *more])
    how = ("--vectors", "none", "--epochs", "2", "--quiet")
    state, valid = tmp_path / "state", ("--valid", first)
    succeed("train", first, "--weight-column", "trust", *valid, "--state", state, "-o", tmp_path / "a.onnx", *how)
    told = run("train", second, "--from", state, *how[:-1], "-o", tmp_path / "b.onnx")
    assert told.exit_code == 0
    assert "does not hold the validation rows of its training; give them again with --valid" in told.stderr
    both = (first, second, "--weight-column", "trust", *valid)
    succeed("train", second, "--from", state, *valid, "-o", tmp_path / "b.onnx", *how)
    succeed("train", *both, "-o", tmp_path / "c.onnx", *how)
    assert (tmp_path / "b.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()
    unweighted = write_rows(tmp_path / "third.csv", [("text", "label"), *(row[:2] for row in more)])
    said = fail(3, "train", unweighted, "--from", state, "-o", tmp_path / "d.onnx", *how)
    assert "has no column 'trust'" in said
