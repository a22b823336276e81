"""Parts of contributions: their sums, their places, and a case worked by hand."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.helpers import Trained
from textcls import Classifier
from textcls.errors import ConfigError, InputError
from textcls.model import sub_token_attribution as parts
from textcls.model.features import FeatureConfig
from textcls.model.sub_token_attribution import RowOutputs
from textcls.model.sub_token_attribution import SubTokenAttribution as Part
from textcls_training.config.settings import Attention, ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train

TEXTS = (
    "",
    "refund",
    "zzqqxx",
    "My card was chargedd twice, and nobodyy answers!",
    "東京 naïve 注文 \U0001f621",
    "a very long word: Donaudampfschifffahrtsgesellschaft",
)


@pytest.fixture(scope="module", params=["norm-ngrams", "norm", "softmax"])
def model(
    request: pytest.FixtureRequest, trained: Trained, sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory
) -> Classifier:
    if request.param == "norm-ngrams":
        return Classifier.load(trained.path)
    path = tmp_path_factory.mktemp("parts") / "model.onnx"
    attention: Attention = request.param
    seeds = 2 if attention == "norm" else 1
    config = TrainConfig(model=ModelConfig(dim=16, attention=attention, seeds=seeds), ngrams=(), epochs=2)
    train(sample, path, config)
    return Classifier.load(path)


@pytest.mark.parametrize("text", TEXTS)
def test_parts_add_up_to_what_their_tokens_added(model: Classifier, text: str) -> None:
    found = model.parts(text)
    explanation = model.predict(text, explain=True).explanation
    assert explanation is not None
    expected = explanation.contributions.sum(0)
    total = np.sum([[*part.contributions.values()] for part in found], 0) if found else 0 * expected
    np.testing.assert_allclose(total, expected, atol=1e-4 * (1 + np.abs(expected).max()))
    # What belongs to one token alone is at most what the token is credited, and the rest are its pairs.
    for t, span in enumerate(explanation.spans):
        own = [part for part in found if part.tokens == (t,)]
        assert all(span[0] <= part.start < part.end <= span[1] for part in own)
    for part in found:
        assert part.kind in ("word", "pair", "ngram")
        assert tuple(part.contributions) == model.labels
        assert part.start == explanation.spans[part.tokens[0]][0] or part.kind == "ngram"


def test_pieces_are_given_of_unknown_words_alone_and_stand_where_they_are(trained: Trained) -> None:
    model = Classifier.load(trained.path)
    text = "please refundd it"
    found = [part for part in model.parts(text) if part.kind == "ngram"]
    assert {part.tokens for part in found} == {(1,)}
    pieces = {text[part.start : part.end] for part in found}
    # With the marks at both ends an n-gram of 3 shows two letters of the word's start.
    assert pieces <= {"re", "ref", "efu", "fun", "und", "ndd", "dd", "refu", "refun", "efund", "fundd", "undd"}
    assert {"ref", "fun"} & pieces


def test_two_tokens_share_a_pair_in_a_case_worked_by_hand() -> None:
    # One group, one label, columns: value, score, energy; weights 2 and 1, softmax attention: weight times value.
    word, left, right = [[3.0, 0, 1], [1.0, 0, 1]], [[0.0, 0, 0], [0.5, 0, 1]], [[0.25, 0, 1], [-1.0, 0, 1]]
    rows = np.array([word, left, right], np.float32)[:, :, None]
    found = RowOutputs(rows, None, np.array([[2.0], [1.0]], np.float32), np.array([True, True]))
    expected = [
        Part("word", 0, 1, (0,), {"x": 6.0}),
        Part("word", 2, 3, (1,), {"x": 1.0}),
        Part("pair", 0, 3, (0, 1), {"x": 2 * 0.25 + 0.5}),
        Part("pair", 2, 3, (1,), {"x": -1.0}, "end"),
    ]
    assert parts.split(found, ((0, 1), (2, 3)), ("x",), FeatureConfig(), norm=False) == expected


def test_a_model_that_mixes_tokens_refuses_in_one_sentence(sample: LabelledTexts, tmp_path: Path) -> None:
    config = TrainConfig(dim=8, mixing="lambda", ngrams=(), epochs=1)
    train(sample, tmp_path / "mixed.onnx", config)
    with pytest.raises(ConfigError, match=r"mixed\.onnx attributes to whole tokens only"):
        Classifier.load(tmp_path / "mixed.onnx").parts("refund")


def test_something_else_than_a_text_is_refused(trained: Trained) -> None:
    wrong: str = ["refund"]  # type: ignore[assignment]
    with pytest.raises(InputError, match="A text is needed, not list"):
        Classifier.load(trained.path).parts(wrong)
