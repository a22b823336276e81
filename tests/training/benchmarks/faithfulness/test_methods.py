from typing import Any

import numpy as np
import pytest
import torch

from faithfulness import gradients, methods
from faithfulness.gradients import SavedHead
from faithfulness.methods import METHODS, Counted, choose
from tests.training.helpers import Trained
from textcls import Classifier
from textcls.errors import ArtifactError, ConfigError
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.export.heads.folded_head import FoldedHead
from textcls_training.pipeline.training import train

TEXT = "my card was charged twice"


@pytest.fixture(scope="module")
def mixed(sample: LabelledTexts, tmp_path_factory: pytest.TempPathFactory) -> Classifier:
    """A model with a mixing layer."""
    path = tmp_path_factory.mktemp("mixed") / "model.onnx"
    model = ModelConfig(dim=8, mixing="gmlp")
    train(sample, path, TrainConfig(model=model, ngrams=(), epochs=1, max_tokens=48, device="cpu"))
    return Classifier.load(path)


def scores(
    name: str, classifier: Classifier, text: str = TEXT
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.float64]], int]:
    model = Counted(classifier)
    label = int(classifier.predict(text).probabilities.argmax())
    return METHODS[name](model, 0)(text, label), model.calls


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_each_token_a_finite_score(name: str, classifier: Classifier) -> None:
    found, _ = scores(name, classifier, "Where is it?")
    assert found.shape == (4,)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_explains_a_single_token(name: str, classifier: Classifier) -> None:
    assert scores(name, classifier, "card")[0].shape == (1,)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("contributions", 1),
        ("contributions_logit", 1),
        ("attention", 1),
        ("leave_one_out", 6),
        ("lime", methods.LIME_SAMPLES),
        ("gradient_x_input", 2),
        ("integrated_gradients", 1 + gradients.STEPS),
        ("random", 0),
    ],
)
def test_calls_of_the_model_are_counted(name: str, calls: int, classifier: Classifier) -> None:
    assert scores(name, classifier)[1] == calls


def test_shap_stays_within_its_calls(classifier: Classifier) -> None:
    assert 2 * 5 + 1 <= scores("shap", classifier)[1] <= methods.SHAP_CALLS + 2


def test_contributions_are_the_evidence_for_the_answer(classifier: Classifier) -> None:
    explanation = classifier.predict(TEXT, explain=True).explanation
    assert explanation is not None
    assert scores("contributions", classifier)[0] == pytest.approx(explanation.evidence())


def test_shap_values_add_up_to_the_change_of_the_probability(classifier: Classifier) -> None:
    found, _ = scores("shap", classifier)
    answer, empty = classifier.predict([TEXT, ""])
    label = int(answer.probabilities.argmax())
    assert found.sum() == pytest.approx(answer.probabilities[label] - empty.probabilities[label], abs=1e-5)


def test_integrated_gradients_nearly_add_up_to_the_change_of_the_log_odds(classifier: Classifier) -> None:
    found, _ = scores("integrated_gradients", classifier)
    answer, empty = (p.probabilities.astype(float) for p in classifier.predict([TEXT, ""]))
    label = int(answer.argmax())
    change = np.log(answer[label] / (1 - answer[label])) - np.log(empty[label] / (1 - empty[label]))
    assert found.sum() == pytest.approx(change, rel=0.03)


@pytest.mark.parametrize("name", ["lime", "shap", "integrated_gradients"])
def test_methods_that_sample_agree_with_leave_one_out_on_what_matters_most(name: str, classifier: Classifier) -> None:
    assert scores(name, classifier)[0].argmax() == scores("leave_one_out", classifier)[0].argmax()


def test_shap_leaves_the_generator_of_everybody_alone(classifier: Classifier) -> None:
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    scores("shap", classifier)
    assert np.random.random() == expected


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_scores(name: str, classifier: Classifier) -> None:
    assert scores(name, classifier)[0].tolist() == scores(name, classifier)[0].tolist()


def test_the_core_in_pytorch_answers_as_the_file_does(classifier: Classifier, trained: Trained) -> None:
    for model in (classifier, Classifier.load(trained.path)):
        saved = SavedHead(model)
        explanation = model.predict(TEXT, explain=True).explanation
        assert explanation is not None
        logits = saved.logits(saved.token_sums(TEXT)).detach().numpy()[0]
        assert logits == pytest.approx(explanation.logit_values, abs=1e-4)


def test_a_head_that_answers_otherwise_is_refused(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(
        self: FoldedHead, padding_BT: torch.Tensor, token_BTGX: torch.Tensor, xp: Any
    ) -> tuple[None, torch.Tensor]:
        return None, token_BTGX.sum((1, 2, 3))[:, None] * torch.from_numpy(self.bias_C)

    monkeypatch.setattr(FoldedHead, "__call__", otherwise)
    with pytest.raises(ArtifactError, match="answers other than its scoring head in PyTorch"):
        SavedHead(classifier)


def test_gradients_are_left_out_of_a_model_with_a_mixing_layer(mixed: Classifier) -> None:
    names, left_out = choose(None, mixed)
    assert set(left_out) == {"gradient_x_input", "integrated_gradients"}
    assert set(names) == set(METHODS) - set(left_out)
    with pytest.raises(ConfigError, match=r"gradient_x_input cannot be used here: it needs a model whose"):
        choose(["gradient_x_input"], mixed)
    with pytest.raises(ConfigError, match=r"Gradients of .* cannot be had"):
        SavedHead(mixed)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["magic"], "There is no method 'magic'"), (["lime", "lime"], "only once"), ([], "at least one")],
)
def test_wrong_names_of_methods_are_refused(names: list[str], message: str, classifier: Classifier) -> None:
    with pytest.raises(ConfigError, match=message):
        choose(names, classifier)
