"""`textcls tune`: proposals, rows that judge a choice and are unknown to it, going on, and what is written."""

import errno
import io
import json
import math
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import textcls
from tests.command_line import fail, run, succeed, write_rows
from textcls.display.terminal.progress import Progress
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.evaluation.comparison.paired import Difference
from textcls.jobs import HERE, Crew, Engine

optuna = pytest.importorskip("optuna", reason="tuning needs Optuna: pip install 'textcls[tune]'")

from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402

from textcls.api.tuning import TriedOptions, TuneReport  # noqa: E402
from textcls_training.data.labelled_texts import LabelledTexts  # noqa: E402
from textcls_training.pipeline import trials  # noqa: E402
from textcls_training.tuning import run as tuning  # noqa: E402
from textcls_training.tuning import settings_file, showing, storage  # noqa: E402
from textcls_training.tuning.run import Settings, tune  # noqa: E402
from textcls_training.tuning.space import default_of, options_of, space_of, usual_values  # noqa: E402

WORDS = ("refund", "parcel", "invoice")
ROWS = LabelledTexts(
    texts=[f"{WORDS[i % 3]} or {WORDS[i // 3 % 3]}, note {i}" for i in range(72)],
    labels=[WORDS[i % 3] for i in range(72)],
)
# What makes a training short; rates alone are left to be chosen.
TOLD: dict[str, Any] = {"epochs": 1, "dim": 4, "ngrams": "none", "bigrams": False, "vectors": "none", "size": "tiny"}
QUICK = Settings(trials=6, folds=2, rounds=1, fixed=TOLD)


class Quiet:
    def phase(self, name: str, steps: int) -> None:
        pass

    def step(self, count: int = 1, state: str = "") -> None:
        pass

    def note(self, text: str) -> None:
        pass


QUIET: Progress = Quiet()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> TuneReport:
    """What an uninterrupted run of one process finds."""
    return tune(ROWS, QUICK, tmp_path_factory.mktemp("tuned") / "a.journal", QUIET)


def without_time(report: TuneReport) -> dict[str, Any]:
    return {name: value for name, value in report.as_json().items() if name not in ("seconds", "trainings")}


# The search


def test_two_workers_find_what_one_does(found: TuneReport, tmp_path: Path) -> None:
    other = tune(ROWS, QUICK, tmp_path / "b.journal", QUIET, Engine("local", 2))
    assert without_time(other) == without_time(found)
    assert other.trainings == found.trainings


@dataclass(frozen=True)
class Breaking(Engine):
    """Is interrupted after so many trainings."""

    after: int = 0

    @contextmanager
    def hired(self, work: Any, in_all: int | None = None) -> Iterator[Crew[Any, Any]]:
        left = [self.after]

        def outcomes(jobs: Sequence[Any]) -> Iterator[Any]:
            for outcome in crew(jobs):
                if not left[0]:
                    raise KeyboardInterrupt
                left[0] -= 1
                yield outcome

        with HERE.hired(work) as crew:
            yield outcomes


def test_an_interrupted_search_goes_on_to_the_same_result_and_trains_nothing_twice(
    found: TuneReport, tmp_path: Path
) -> None:
    path, after = tmp_path / "c.journal", 7
    with pytest.raises(KeyboardInterrupt):
        tune(ROWS, QUICK, path, QUIET, Breaking(after=after))
    rest = tune(ROWS, QUICK, path, QUIET)
    assert without_time(rest) == without_time(found)
    assert rest.trainings == found.trainings - after


def test_more_trials_begin_with_those_that_are_kept(found: TuneReport, tmp_path: Path) -> None:
    path = tmp_path / "d.journal"
    few = tune(ROWS, replace(QUICK, trials=3), path, QUIET)
    assert few.tried == found.tried[:3]
    assert without_time(tune(ROWS, QUICK, path, QUIET)) == without_time(found)


def test_the_first_proposal_is_the_defaults_and_the_others_differ(found: TuneReport) -> None:
    assert found.tried[0].options == {}
    assert [one.number for one in found.tried] == list(range(6))
    chosen = [tuple(one.multiples.values()) for one in found.tried]
    assert len(set(chosen)) == 6
    assert set(found.tried[1].options) == {"table_rate", "head_rate"}


def test_no_search_knows_a_row_that_judges_its_choice_and_each_row_judges_once(tmp_path: Path) -> None:
    with storage.opened(tmp_path / "e.journal", {}) as kept:
        searches = tuning.Tuning(ROWS, replace(QUICK, rounds=3), kept, HERE, QUIET).searches
        folds = tuning.Tuning(ROWS, replace(QUICK, rounds=3), kept, HERE, QUIET).folds
    *outer, last = searches
    assert last.held_out is None
    assert sorted(row for one in outer for row in one.held_out.tolist()) == list(range(72))  # type: ignore[union-attr]
    for one in searches:
        own = folds[one.first_fold : one.first_fold + 2]
        known = {row for fold in own for row in (*fold.train.tolist(), *fold.held_out.tolist())}
        assert known == set(one.rows.tolist())
        assert one.held_out is None or not known & set(one.held_out.tolist())
        assert sorted(row for fold in own for row in fold.held_out.tolist()) == sorted(known)


def test_of_many_rows_one_part_is_held_out_and_one_search_is_made() -> None:
    many = LabelledTexts(texts=[f"{i}" for i in range(trials.MANY_ROWS)], labels=["a", "b"] * (trials.MANY_ROWS // 2))
    (fold,) = tuning.rounds_of(many, None)
    assert len(fold.held_out) == trials.MANY_ROWS // 5
    assert len(tuning.rounds_of(ROWS, None)) == trials.ROUNDS + 1


def test_after_the_time_no_batch_begins_but_the_first(tmp_path: Path) -> None:
    notes: list[str] = []
    progress = SimpleNamespace(phase=lambda *_: None, step=lambda *_: None, note=notes.append)
    report = tune(ROWS, replace(QUICK, trials=None, seconds=1e-6), tmp_path / "f.journal", progress)
    assert len(report.tried) == 4
    assert notes[0] == "Each search judges its first proposals whatever the time: up to 8 trainings."


def test_a_proposal_that_cannot_be_trained_is_told_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        tuning, "options_of", lambda *given: options_of(*given) | ({"table_rate": 1e30} if options_of(*given) else {})
    )
    report = tune(ROWS, replace(QUICK, trials=4), tmp_path / "g.journal", QUIET)
    assert [one.state for one in report.tried] == ["judged", "failed", "failed", "failed"]
    assert report.options == {}
    assert showing.verdict(report) == "Nothing that was tried did better than the defaults: keep them."


# What a choice means


def test_a_choice_of_what_is_usual_is_no_option_and_multiples_are_of_what_is_usual() -> None:
    times, ngrams = FloatDistribution(0.25, 4, log=True), CategoricalDistribution((None, "none"))
    space = {"epochs": times, "table_rate": times, "ngrams": ngrams}
    usual = {"epochs": 10, "table_rate": 0.03}
    assert options_of(space, {name: default_of(one) for name, one in space.items()}, usual) == {}
    assert options_of(space, {"epochs": 1.02, "table_rate": 2.0, "ngrams": "none"}, usual) == {
        "table_rate": 0.06,
        "ngrams": "none",
    }
    assert options_of(space, {"epochs": 0.31, "table_rate": 1.0, "ngrams": None}, usual) == {"epochs": 3}


def test_features_of_an_embedding_that_reads_words_alone_are_not_chosen() -> None:
    assert not {*space_of(ROWS, {"embedding": "bits"}, macro_f1=False)} & {"ngrams", "bigrams"}


def test_what_is_usual_is_what_training_takes() -> None:
    usual = usual_values(ROWS, {})
    assert (usual["dim"], usual["head_rate"]) == (32, 0.009)
    assert usual_values(ROWS, TOLD)["epochs"] == 1


# The file of trials


def test_trials_of_other_rows_are_refused(found: TuneReport, tmp_path: Path) -> None:
    path = tmp_path / "h.journal"
    tune(ROWS, replace(QUICK, trials=1), path, QUIET)
    fewer = ROWS.only(range(70))
    with pytest.raises(ConfigError, match=r"h.journal holds trials of other rows; name another --storage"):
        tune(fewer, QUICK, path, QUIET)
    with pytest.raises(ConfigError, match=r"holds trials of other folds and measure; name another"):
        tune(ROWS, replace(QUICK, folds=3, measure="macro_f1"), path, QUIET)


def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.csv", [["text", "label"], ["a", "b"]])
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"rows.csv is not a journal of trials; name another --storage"):
        tune(ROWS, QUICK, path, QUIET)
    assert path.read_bytes() == before
    path.write_text('{"key": "of another program, without an end of its line"}')
    with pytest.raises(InputError, match="is not a journal of trials; name another --storage"):
        tune(ROWS, QUICK, path, QUIET)
    assert path.read_text().endswith('line"}')
    path.write_text('{"op_code": 17}\n')
    with pytest.raises(InputError, match="is not a journal of trials, or it is damaged"):
        tune(ROWS, QUICK, path, QUIET)


def test_two_runs_cannot_share_a_file_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "i.journal"
    with storage.opened(path, {}), pytest.raises(SurroundingsError, match="Another process tunes with"):
        tune(ROWS, QUICK, path, QUIET)


def test_a_search_that_was_killed_before_it_said_whose_it_is_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "m.journal"
    with storage.opened(path, {"rows": "these"}) as kept:
        kept.study("first")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "these" not in line))
    with storage.opened(path, {"rows": "these"}) as kept:
        assert kept.study("first").user_attrs == {"textcls": {"rows": "these"}}


def test_trials_of_another_program_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "n.journal"
    with storage.opened(path, {}) as kept:
        kept.study("first").add_trial(optuna.trial.create_trial(value=1.0))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"user_attr"' not in line))
    with pytest.raises(ConfigError, match="holds trials of another program"), storage.opened(path, {}):
        pass


def test_what_fails_beside_the_journal_is_not_blamed_on_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-file"), storage.opened(tmp_path / "k.journal", {}):
        (tmp_path / "no-such-file").read_bytes()


def test_a_lock_that_the_file_system_does_not_have_is_not_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with (
        pytest.raises(SurroundingsError, match=r"l\.journal cannot be written: No locks available"),
        storage.opened(tmp_path / "l.journal", {}),
    ):
        pass


def test_when_the_disk_is_full_the_journal_is_named_and_the_search_goes_on_later(
    found: TuneReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sync = tmp_path / "m.journal", os.fsync
    left = 20

    def fsync(file: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.ftruncate(file, path.stat().st_size - 10)
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    with monkeypatch.context() as full:
        full.setattr("optuna.storages.journal._file.os.fsync", fsync)
        with pytest.raises(SurroundingsError, match=r"m\.journal cannot be written: No space left on device; name"):
            tune(ROWS, QUICK, path, QUIET)
    assert not path.read_bytes().endswith(b"\n")
    assert without_time(tune(ROWS, QUICK, path, QUIET)) == without_time(found)
    assert without_time(tune(ROWS, QUICK, path, QUIET)) == without_time(found)


# The command


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows, as a table with other names for its columns."""
    rows = [["body", "kind"], *([text, label] for text, label in zip(ROWS.texts, ROWS.labels, strict=True))]
    return write_rows(tmp_path_factory.mktemp("table") / "rows.csv", rows)


FEW = ("--trials", "4", "--folds", "2", "--rounds", "1", "--quiet")
OPTIONS = ("--text-column", "body", "--label-column", "kind", "--ngrams", "none", "--no-bigrams", "--vectors", "none",
           "--epochs", "1", "--dim", "4")  # fmt: skip


def test_the_file_that_is_written_trains_the_bytes_of_the_options_in_it(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "textcls.toml"
    said = json.loads(succeed("tune", table, "-o", output, *FEW, *OPTIONS, "--json"))
    assert said["fixed"] == {"epochs": 1, "dim": 4, "ngrams": "none", "bigrams": False, "vectors": "none"}
    settings = tomllib.loads(output.read_text())["train"]
    assert {name: settings[name.replace("_", "-")] for name in said["recommended"]} == said["recommended"]
    assert (settings["text-column"], settings["label-column"]) == (["body"], "kind")
    succeed("train", table, "-o", tmp_path / "a.onnx", "--config", output, "--quiet")
    more = [f"--{name.replace('_', '-')}={value}" for name, value in said["options"].items() if said["is_better"]]
    succeed("train", table, "-o", tmp_path / "b.onnx", "--quiet", *OPTIONS, *more)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    again = succeed("tune", table, "-o", output, *FEW, *OPTIONS)
    assert f"Settings -> {output}. Next: textcls train {table} --config {output}" in again


@pytest.mark.parametrize(
    ("rows", "code", "sentence"),
    [
        (["a,x", "b,y"], 3, "There are 2 rows, and from fewer than 60 nothing can be told of options"),
        ([f"text {i},x" for i in range(80)], 3, "only the label 'x'"),
    ],
    ids=["two rows", "one label"],
)
def test_rows_that_cannot_be_tuned_on_are_told_before_anything_is_trained(
    rows: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["text,label", *rows]))
    assert sentence in fail(code, "tune", path, "-o", tmp_path / "out.toml", "--quiet")
    assert not (tmp_path / "out.toml").exists()


@pytest.mark.parametrize(("option", "value"), [("--seconds", "0"), ("--trials", "0"), ("--folds", "1")])
def test_a_budget_of_nothing_is_refused(option: str, value: str, table: Path, tmp_path: Path) -> None:
    result = run("tune", table, "-o", tmp_path / "out.toml", option, value)
    assert result.exit_code == 2
    assert option in result.stderr


def test_one_file_for_two_things_is_refused(table: Path, tmp_path: Path) -> None:
    said = fail(2, "tune", table, "-o", tmp_path / "a.journal", "--quiet")
    assert "Settings and journal are files of their own" in said
    assert not list(tmp_path.glob("a.*"))


def test_settings_that_somebody_has_written_are_not_replaced(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "textcls.toml"
    output.write_text("[serve]\nport = 8000\n")
    assert "not written by textcls tune, and is not replaced" in fail(2, "tune", table, "-o", output, "--quiet")
    assert output.read_text() == "[serve]\nport = 8000\n"


def test_ctrl_c_says_where_what_was_found_is_kept(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textcls_training.tuning.cli.Engine", lambda *_: Breaking(after=3))
    result = run("tune", table, "-o", tmp_path / "out.toml", *FEW, *OPTIONS)
    assert result.exit_code == 130
    journal = tmp_path / "out.journal"
    assert result.stderr == f"Interrupted; {journal} keeps what was found, and the same command continues from there.\n"
    assert not (tmp_path / "out.toml").exists()


# What is said of it


@pytest.fixture
def report() -> TuneReport:
    """A choice that is better than the defaults beyond chance."""
    tried = (
        TriedOptions(0, {}, {"epochs": 1.0}, 0.8, "judged"),
        TriedOptions(1, {"epochs": 20, "ngrams": "2,3"}, {"epochs": 2.0}, 0.85, "judged"),
        TriedOptions(2, {"epochs": 5}, {"epochs": 0.5}, 0.7, "left"),
        TriedOptions(3, {"epochs": 30}, {"epochs": 3.0}, None, "failed"),
    )
    return TuneReport(
        rows=300, labels=3, measure="accuracy", rounds=3, folds=3, judged_rows=300,
        accuracy=Difference(0.8, 0.85, 0.02, 0.08), macro_f1=Difference(0.7, 0.74, -0.01, 0.09), p_value=0.01,
        fixed={"size": "small"}, options={"epochs": 20, "ngrams": "2,3"}, usual={"epochs": 10}, tried=tried,
        importances={"epochs": 0.75, "ngrams": 0.25}, trainings=60, seconds=12.5,
    )  # fmt: skip


def test_what_is_better_stands_in_the_file_and_what_may_be_chance_as_a_comment(report: TuneReport) -> None:
    content = settings_file.content(report, {"text-column": ["a b", 'c"d']})
    train = {"text-column": ["a b", 'c"d'], "size": "small"}
    assert tomllib.loads(content) == {"train": {**train, "epochs": 20, "ngrams": "2,3"}}
    chance = replace(report, accuracy=Difference(0.8, 0.81, -0.01, 0.03))
    content = settings_file.content(chance, {})
    assert tomllib.loads(content) == {"train": {"size": "small"}}
    assert "# epochs = 20" in content
    assert not replace(report, measure="macro_f1").is_better


def test_the_verdict_says_what_to_train_with(report: TuneReport) -> None:
    assert showing.verdict(report).startswith("Better than the defaults: +2.00 to +8.00 points of accuracy")
    chance = replace(report, accuracy=Difference(0.8, 0.81, -0.01, 0.03))
    assert "Not better than the defaults beyond chance (-1.00 to +3.00" in showing.verdict(chance)
    assert "4 searches of 4 proposals, 1 of them left early, 1 could not be trained" in showing.how(report)


def test_what_mattered_is_shown_by_bars(report: TuneReport) -> None:
    Console(file=(printed := io.StringIO()), width=80).print(list(showing.tuning_report(report))[-1])
    assert [line.rstrip() for line in printed.getvalue().splitlines()] == [
        "option  default  tuned  what mattered",
        "epochs       10     20  " + "█" * 24 + "  75%",
        "ngrams     auto    2,3  " + "█" * 8 + " " * 18 + "25%",
    ]


def test_python_tunes_as_the_command_does_and_train_takes_what_it_recommends(
    found: TuneReport, table: Path, tmp_path: Path
) -> None:
    budget: dict[str, Any] = {"trials": 6, "folds": 2, "rounds": 1}
    again = textcls.tune(ROWS.texts, ROWS.labels, **budget, **TOLD)
    assert (again.options, again.tried, again.accuracy) == (found.options, found.tried, found.accuracy)
    textcls.train(ROWS.texts, ROWS.labels, tmp_path / "model.onnx", **again.recommended)
    with pytest.raises(ConfigError, match="trials must be at least 1, not 0"):
        textcls.tune(ROWS.texts, ROWS.labels, trials=0)
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"folds": 2.5}, "folds must be a whole number, not 2.5"),
        ({"rounds": 50}, "rounds must be 1 to 10, not 50"),
        ({"seconds": math.nan}, "seconds must be a finite number above 0"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"teacher": "x"}, "A search has no option 'teacher'; leave it to textcls.train."),
    )
    for how, said in wrong:
        with pytest.raises(ConfigError, match=said):
            textcls.tune(ROWS.texts, ROWS.labels, **how)
    with pytest.raises(ConfigError, match="measure is 'f1'; it must be one of accuracy, macro_f1"):
        textcls.tune(ROWS.texts, ROWS.labels, measure="f1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="labels"):
        textcls.tune(ROWS.texts, "a")
    with pytest.raises(ConfigError, match="A search reads texts alone"):
        textcls.tune([{"text": text} for text in ROWS.texts], ROWS.labels)  # type: ignore[misc]


def test_rows_may_have_weights_and_measures_the_names_of_the_command_line() -> None:
    how: dict[str, Any] = {"trials": 1, "folds": 2, "rounds": 1, "measure": "macro-f1", **TOLD}
    plain, ones = (textcls.tune(ROWS.texts, ROWS.labels, weights=w, **how) for w in (None, [1.0] * len(ROWS.texts)))
    assert plain.measure == "macro_f1"
    again = textcls.tune(iter(ROWS.texts), ROWS.labels, weights=np.ones(72), **how)
    assert without_time(again) == without_time(plain)
    assert without_time(plain) == without_time(ones)
    other = textcls.tune(ROWS.texts, ROWS.labels, weights=[1 + 50 * (i % 3 == 0) for i in range(72)], **how)
    assert without_time(other) != without_time(plain)
    with pytest.raises(InputError, match="72 texts and 1 weights"):
        textcls.tune(ROWS.texts, ROWS.labels, weights=[1.0], **how)
