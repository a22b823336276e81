"""Trigrams: where letters are tokens, longer sequences of them are read, and the file says all that they added."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from textcls.explain.lexicon.table import lexicon
from textcls.explain.lexicon.terms import END, START, counted, read_terms
from textcls.model.classifier import Classifier
from textcls_training.config.resolve import resolve
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.pipeline.training import train

# Of each label the same letters, in another order: 東京 and 京東, 上海 and 海上.
SYLLABLES = ("\u6771\u4eac\u4e0a", "\u6d77\u5357\u5317", "\u4eac\u6771\u4e0a", "\u6d77\u5317\u5357")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    texts, labels = [], []
    for i in range(240):
        label = i % 2
        own = [SYLLABLES[2 * label + k] for k in rng.integers(0, 2, 3)]
        texts.append("".join(own) + chr(0x4E00 + int(rng.integers(300))))
        labels.append(("first", "second")[label])
    path = tmp_path_factory.mktemp("trigrams") / "letters.onnx"
    train(LabelledTexts(texts=texts, labels=labels), path, TrainConfig(epochs=3))
    return path


def test_scripts_without_spaces_have_trigrams_and_others_none() -> None:
    def features(*texts: str, labels: int = 2, **options: bool) -> bool:
        config = TrainConfig(**options)  # type: ignore[arg-type]
        return resolve(config, texts, 9, labels, impl="compiled").features.trigrams

    assert features("\u6771\u4eac\u306b\u884c\u304f USA")
    assert features("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35")
    assert not features("\ub3c4\ucfc4\uc5d0 \uac04\ub2e4", "to \u6771\u4eac")
    # A sixth of the letters is enough if they are sounds, as in Thai, and not if they are syllables, as in Chinese.
    assert features("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 with twenty-four letters")
    assert not features("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 with twenty-four letters", labels=51)
    assert not features("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 with more than thirty other letters besides")
    assert not features("\u6771\u4eac\u306b\u884c\u304f\u6771 with twenty-four letters")
    assert not features("\u6771\u4eac", bigrams=False)
    # Whichever language every other row has.
    assert features(*2500 * ("\u6771\u4eac\u306b", "ok"))
    assert features(*2500 * ("ok", "\u6771\u4eac\u306b"))


def test_a_file_with_trigrams_says_that_older_readers_cannot_read_it(path: Path) -> None:
    info = Classifier.load(path).info
    assert info.features.trigrams
    assert info.format_version == 4


def test_older_versions_of_onnx_runtime_have_what_the_graph_needs(path: Path) -> None:
    graph = onnx.load(path).graph
    unsigned = {one.name for one in graph.initializer if one.data_type == onnx.TensorProto.UINT32}
    assert not [node for node in graph.node if node.op_type == "Where" and unsigned & {*node.input}]


@pytest.mark.parametrize("text", ["", "\u6771", "\u6771\u4eac", "\u6771\u4eac\u4e0a\u6d77 \u5357USA\u5317", "zzz"])
def test_parts_add_up_to_the_tokens_and_a_text_is_answered_alike_beside_longer_ones(path: Path, text: str) -> None:
    model = Classifier.load(path)
    explanation = model.predict(text, explain=True).explanation
    assert explanation is not None
    parts = model.parts(text)
    total = np.sum([[*part.contributions.values()] for part in parts], 0) if parts else np.zeros(2)
    np.testing.assert_allclose(total, explanation.contributions.sum(0), atol=1e-4)
    alone, beside = model.predict(text), model.predict([text, 9 * text + "\u6771\u4eac\u4e0a\u5357\u5317"])[0]
    np.testing.assert_allclose(beside.probabilities, alone.probabilities, atol=1e-6)


def test_a_triple_is_named_by_its_three_letters_and_credited_to_them(path: Path) -> None:
    triples = [part for part in Classifier.load(path).parts("\u6771\u4eac\u4e0a") if part.kind == "triple"]
    assert ((0, 3), (0, 1, 2), None) in [((part.start, part.end), part.tokens, part.edge) for part in triples]
    assert {part.edge for part in triples} <= {None, "start", "end"}


def test_the_lexicon_says_of_pairs_and_triples_what_their_rows_hold(path: Path, tmp_path: Path) -> None:
    model = Classifier.load(path)
    text = "\u6771\u4eac\u4e0a"
    found = lexicon(model, [text])
    parts = model.parts(text)
    edges = {None: "{}", "start": START + "{}", "end": "{}" + END}
    shown = {(part.kind, edges[part.edge].format(text[part.start : part.end])) for part in parts}
    assert {kind for kind, _ in shown} >= {"pair", "triple"}
    assert {(kind, term.replace(" ", "")) for kind, term in zip(found.kinds, found.terms, strict=True)} == shown
    rows_ktc = model.graph.run([text], ["rows"])["rows"][:, 0, :, :, :2].sum(2)
    weights = dict(zip(found.terms, found.weights, strict=True))
    triple, pair = sum(rows_ktc[3 + i, 2 - i] for i in range(3)), rows_ktc[1, 1] + rows_ktc[2, 0]
    np.testing.assert_allclose(weights["\u6771 \u4eac \u4e0a"], triple, rtol=1e-5)
    np.testing.assert_allclose(weights["\u6771 \u4eac"], pair, rtol=1e-5)
    written = tmp_path / "terms.csv"
    written.write_text(found.as_csv(), encoding="utf-8")
    assert read_terms(written, model.info).of_kind == {
        kind: Counter({term: n for term, n in some.items() if term in found.terms})
        for kind, some in counted(model.info, [text]).of_kind.items()
    }


def test_a_student_reads_trigrams_if_labelled_texts_alone_do_whatever_the_script_of_the_others(
    tmp_path: Path,
) -> None:
    texts = [f"{SYLLABLES[i % 4]}{chr(0x4E00 + i)}" for i in range(40)]
    given = LabelledTexts(texts=texts, labels=["first" if i % 4 < 2 else "second" for i in range(40)])
    others = UnlabelledTexts(
        texts=[f"an english text, number {i}" for i in range(200)], probability_UC=None, given=200, copies=0
    )
    config = TrainConfig(epochs=1, unlabelled_weight=1)
    report = train(given, tmp_path / "m.onnx", config, unlabelled=others)
    assert report.distillation is not None
    assert Classifier.load(tmp_path / "m.onnx").info.features.trigrams


def test_a_state_that_keeps_no_rows_counts_words_and_pairs_and_there_are_no_trigrams(tmp_path: Path) -> None:
    texts = [f"{SYLLABLES[i % 4]}{chr(0x4E00 + i)}" for i in range(40)]
    given = LabelledTexts(texts=texts, labels=["first" if i % 4 < 2 else "second" for i in range(40)])
    train(given, tmp_path / "m.onnx", TrainConfig(epochs=1, rehearsal_rows=20), state=tmp_path / "state")
    assert not Classifier.load(tmp_path / "m.onnx").info.features.trigrams
