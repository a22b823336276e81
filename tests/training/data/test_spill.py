"""Rows that do not fit into memory: the same texts, arrays and model as in memory, and nothing left behind."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls._util.spill import IN_MEMORY, Spill
from textcls.data.text_store import TextStore
from textcls.errors import SurroundingsError
from textcls.model.features import FeatureConfig
from textcls_training.config import memory
from textcls_training.config.settings import from_options
from textcls_training.data import corpus as corpus_module
from textcls_training.data import feature_space, split
from textcls_training.data.arrays import blocks, starts
from textcls_training.data.corpus import RARE, Corpus
from textcls_training.data.feature_space import FeatureSpace
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import training as pipeline

pytestmark = pytest.mark.slow  # Whole models are trained.

ON_DISK = Spill(0)
SAMPLE = Path(__file__).parents[3] / "textcls" / "demo" / "support_tickets.csv"
texts_strategy = st.lists(st.text(max_size=12), max_size=30)


# Texts


@given(texts_strategy, st.integers(0, 400))
def test_texts_on_disk_are_those_that_were_given(texts: list[str], limit: int) -> None:
    store = TextStore(Spill(limit))
    for text in texts:
        store.append(text)
    assert len(store) == len(texts)
    assert list(store) == texts
    assert store[1::3] == texts[1::3]
    assert [store[i] for i in range(-len(texts), len(texts))] == texts + texts


def test_an_unpaired_surrogate_and_a_number_beyond_the_texts_are_as_in_a_list() -> None:
    store = TextStore(ON_DISK)
    store.append("\ud800 \0")
    assert store[0] == "\ud800 \0"
    with pytest.raises(IndexError):
        store[1]


# Arrays


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 9))
def test_blocks_are_all_lists_in_order_and_as_small_as_lists_allow(lengths: list[int], size: int) -> None:
    start = starts(np.array(lengths, np.int64))
    found = [*blocks(start, size)]
    assert [i for first, last in found for i in range(first, last)] == [*range(len(lengths))]
    assert all(last == first + 1 or start[last] - start[first] <= size for first, last in found)


@given(texts_strategy, st.data())
def test_a_corpus_on_disk_is_that_in_memory_and_so_are_its_selections_and_rows(texts: list[str], data: Any) -> None:
    which = np.array(data.draw(st.lists(st.integers(0, len(texts) - 1))) if texts else [], np.int64)
    config = FeatureConfig()
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for spill, at_once in ((IN_MEMORY, 1 << 22), (ON_DISK, 3)):
            patch.setattr(blocks, "__defaults__", (at_once,))
            corpus = Corpus.of(texts, 5, spill)
            space = FeatureSpace.fit(corpus, config)
            chosen = corpus.select(which)
            arrays = (
                corpus.token,
                chosen.token,
                chosen.hash,
                chosen.start,
                space.weight,
                space.encode(chosen).sequence_row,
            )
            found.append((corpus.types, *(array.tolist() for array in arrays)))
    assert found[0] == found[1]


def test_a_full_disk_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(SurroundingsError, match=r"^A temporary file in .* cannot be written: No space left"):
        ON_DISK.empty(10, np.int32)


# Bounds


def test_of_too_many_types_the_frequent_ones_are_kept_whatever_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "MOST_TYPES", 8)
    monkeypatch.setattr(corpus_module, "BLOCK", 4)
    texts = [f"often once{i} soon" if i > 15 else f"often once{i}" for i in range(40)]
    corpus = Corpus.of(texts, 9)
    assert corpus.has_rare
    assert corpus.types[0] == RARE
    assert {"often", "soon"} < set(corpus.types)
    assert len(corpus.types) <= 1 + 8 + 4
    words = [[corpus.types[number] for number in corpus.select(np.array([i])).token] for i in (0, 30)]
    assert words == [["often", RARE], ["often", RARE, "soon"]]
    space = FeatureSpace.fit(corpus, FeatureConfig(trigrams=True))
    rows = space.encode(corpus.select(np.array([30])))
    assert rows.type_rows.row[: rows.type_rows.start[1]].size == 0
    # Sequences with what is rare are nothing: of START often, often RARE, RARE soon, soon END two are left.
    assert (rows.sequence_row > 0).tolist() == [[True, False, False, True], 4 * [False]]


def test_of_too_many_features_the_frequent_ones_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_space, "MOST_ROWS", 3)
    space = FeatureSpace.fit(Corpus.of(["a", "a b", "a b c", "a b c d"], 9), FeatureConfig(bigrams=False))
    assert space.word_rows(["a", "b", "c", "d"])[:, 0].astype(bool).tolist() == [True, True, True, False]


def test_validation_rows_are_a_tenth_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(split, "MOST_VALIDATION_ROWS", 200)
    held = {
        rows: int(next(split.masks_of(np.arange(rows) * 7919, np.arange(rows) % 2)).sum())
        for rows in (1500, 2000, 4000, 10_000)
    }
    assert held == {1500: 150, 2000: 200, 4000: 200, 10_000: 200}


# Whole trainings


@pytest.fixture(scope="module")
def rows() -> LabelledTexts:
    texts = [f"row {i} {['cat', 'dog'][i % 2]} {i * i % 97}" for i in range(1600)]
    return LabelledTexts(texts=texts, labels=["xy"[i % 2] for i in range(1600)])


def test_the_model_has_the_same_bytes_in_memory_and_on_disk(
    rows: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = from_options({"epochs": 2, "max_memory": "1GB"})
    pipeline.train(rows, tmp_path / "memory.onnx", config)
    monkeypatch.setattr(memory, "PART", 10**12)
    pipeline.train(rows, tmp_path / "disk.onnx", config)
    assert (tmp_path / "disk.onnx").read_bytes() == (tmp_path / "memory.onnx").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk.onnx", "memory.onnx"]


def test_of_very_many_rows_the_model_that_was_validated_is_the_one_that_is_saved(
    rows: LabelledTexts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("textcls_training.config.resolve.MANY_ROWS", 1600)
    # Where each part is held out in turn, each fit lacks a fifth of the rows, and one more has them all.
    every_part = pipeline.train(rows, tmp_path / "model.onnx", from_options({"epochs": 2}))
    assert (every_part.rows, every_part.held_out_rows) == (1600, 1600)
    monkeypatch.setattr("textcls_training.pipeline.preparing.QUICK_ROWS", 0)
    report = pipeline.train(rows, tmp_path / "model.onnx", from_options({"epochs": 2}))
    assert (report.rows, report.held_out_rows) == (1440, 160)
    assert not report.interrupted


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "killed"])
def test_no_file_is_left_when_a_training_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    code = (
        "import signal, time; from textcls._util.spill import Spill; from pathlib import Path\n"
        # Ctrl-C is ignored in what a script has started in the background.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"spill = Spill(0, Path({str(tmp_path)!r}))\n"
        "array = spill.empty(1000, 'i4'); grown = spill.growing('i4'); grown.extend(array)\n"
        "print('there', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(how)
        assert process.wait(30) != 0
    assert [*tmp_path.iterdir()] == []
