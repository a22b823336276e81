"""The options of training: each stands once, and every way to train takes the same values and refuses the others."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from textcls._util.options import Choice
from textcls.cli import main
from textcls.errors import ConfigError
from textcls_torch.models.mixing import MIXERS
from textcls_training.cli import train as cli
from textcls_training.config.settings import (
    MIXINGS,
    OPTIONS,
    ModelConfig,
    OptimConfig,
    TrainConfig,
    from_options,
)
from textcls_training.pipeline import training as pipeline
from textcls_training.sklearn import TextClassifier

TEXTS, LABELS = ["refund please", "where is it"] * 10, ["billing", "shipping"] * 10
# Values of options, and the plain form that training gets.
GOOD: list[tuple[str, Any, Any]] = [
    ("ngrams", "3,5", (3, 5)),
    ("ngrams", (3, 5), (3, 5)),
    ("ngrams", [3, 5], (3, 5)),
    ("ngrams", np.array([3, 5]), (3, 5)),
    ("ngrams", "none", ()),
    ("ngrams", (), ()),
    ("ngrams", "auto", None),
    ("ngrams", None, None),
    ("class_weight", None, "auto"),
    ("class_weight", "none", "none"),
    ("class_weight", "balanced", "balanced"),
    ("class_weight", {"billing": 2, "shipping": np.float32(0.5)}, {"billing": 2.0, "shipping": 0.5}),
    ("target_precision", None, None),
    ("target_recall", 1, 1.0),
    ("epochs", np.int64(3), 3),
    ("epochs", None, None),
    ("dim", 16, 16),
    ("bigrams", False, False),
    ("mixing", None, "none"),
    ("mixing_rate", 1, 1.0),
    ("table_rate", 1, 1.0),
    ("head_rate", None, None),
    ("size", "tiny", "tiny"),
    ("max_tokens", None, 2048),
    ("vectors", None, None),
    ("vectors", "auto", None),
    ("vectors", "english", "english"),
    ("vectors", "none", "none"),
    ("vectors", "./none", Path("none")),
    ("vectors", Path("some.vectors"), Path("some.vectors")),
]
# Values that no way to train takes, as they are given in Python and on the command line, and the sentence.
BAD: list[tuple[str, Any, str, str]] = [
    ("epochs", 0, "0", "epochs must be at least 1, not 0."),
    ("epochs", 2.5, "2.5", "epochs must be a whole number, not {}."),
    ("epochs", "many", "many", "epochs must be a whole number, not 'many'."),
    ("dim", 1025, "1025", "dim must be 1 to 1024, not 1025."),
    ("max_tokens", 0, "0", "max_tokens must be 1 to 1000000, not 0."),
    ("head_rate", 0.0, "0", "head_rate must be a finite number above 0, not 0.0."),
    ("mixing_rate", 0.0, "0", "mixing_rate must be a finite number above 0, not 0.0."),
    ("mixing_rate", math.nan, "nan", "mixing_rate must be a finite number above 0, not nan."),
    ("mixing_rate", math.inf, "inf", "mixing_rate must be a finite number above 0, not inf."),
    ("mixing_rate", "fast", "fast", "mixing_rate must be a number, not 'fast'."),
    ("size", "big", "big", "size must be one of tiny, small, default, full, not 'big'."),
    (
        "class_weight",
        "rare",
        "rare",
        "class_weight must be auto, none, balanced, or the weight of each label in a mapping or a JSON file, "
        "not 'rare'.",
    ),
    ("target_precision", 1.5, "1.5", "target_precision must be a finite number above 0 to 1, not 1.5."),
    ("target_recall", 0.0, "0", "target_recall must be a finite number above 0 to 1, not 0.0."),
    ("mixing", "furrier", "furrier", f"mixing must be one of {', '.join(MIXINGS)}, not 'furrier'."),
    ("attention", "dot", "dot", "attention must be one of norm, softmax, cosine, kernel, metric, not 'dot'."),
    ("embedding", "bytes", "bytes", "embedding must be one of rows, bits, not 'bytes'."),
    ("values", "both", "both", "values must be one of token, mixed, not 'both'."),
    ("ngrams", "3-5", "3-5", "ngrams must be auto, none or sizes with commas between them, such as 3,5, not '3-5'."),
    ("ngrams", "5,3", "5,3", "n-gram sizes must be different numbers from 2 to 8 in rising order, not (5, 3)."),
    ("device", "tpu", "tpu", "device must be one of auto, cpu, cuda, not 'tpu'."),
]
PYTHON_ALONE: list[tuple[str, Any, str]] = [
    ("bigrams", "yes", "bigrams must be True or False, not 'yes'."),
    ("bigrams", 1, "bigrams must be True or False, not 1."),
    ("epochs", True, "epochs must be a whole number, not True."),
    ("epochs", "3", "epochs must be a whole number, not '3'."),
    ("mixing_rate", False, "mixing_rate must be a number, not False."),
    ("ngrams", (3.5,), "ngrams must be auto, none or sizes with commas between them, such as 3,5, not (3.5,)."),
    ("vectors", 3, "vectors must be auto, none, english, or the name of a file, not 3."),
    ("ngrams", 3, "ngrams must be auto, none or sizes with commas between them, such as 3,5, not 3."),
    ("class_weight", {}, 'class_weight must hold labels with their weights, such as {"billing": 2}.'),
    (
        "class_weight",
        {"billing": -2},
        "class_weight: the weight of 'billing' must be a finite number from 0, not -2.",
    ),
    (
        "class_weight",
        3,
        "class_weight must be auto, none, balanced, or the weight of each label in a mapping or a JSON file, not 3.",
    ),
    ("size", ["tiny"], "size must be one of tiny, small, default, full, not ['tiny']."),
]


class StoppedError(Exception):
    """Raised in the place of training, once its configuration is known."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TrainConfig]:
    """The configurations that training was asked for, without training."""
    found: list[TrainConfig] = []

    def train(_given: Any, _output: Any, config: TrainConfig, **_: Any) -> None:
        found.append(config)
        raise StoppedError("stopped")

    monkeypatch.setattr(pipeline, "train", train)
    return found


def command(*arguments: str) -> Result:
    # Through the program: click keeps the help options that a command has when it is first called.
    words = ["train", "rows.csv", "--output", "model.onnx", *arguments]
    return CliRunner(env={"COLUMNS": "400"}).invoke(main, words)


@pytest.mark.parametrize(("name", "value", "plain"), GOOD, ids=str)
def test_python_and_scikit_learn_take_the_same_values(
    name: str, value: Any, plain: Any, asked: list[TrainConfig]
) -> None:
    assert getattr(from_options({name: value}), name) == plain
    with pytest.raises(StoppedError, match=r"^stopped$"):
        TextClassifier(**{name: value}).fit(TEXTS, LABELS)
    assert getattr(asked[0], name) == plain


@pytest.mark.parametrize(("name", "value", "sentence"), [*((n, v, s) for n, v, _, s in BAD), *PYTHON_ALONE], ids=str)
def test_python_and_scikit_learn_refuse_the_same_values_in_the_same_sentence(
    name: str, value: Any, sentence: str
) -> None:
    sentence = sentence.format(value) if "{}" in sentence else sentence
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        from_options({name: value})
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        TextClassifier(**{name: value}).fit(TEXTS, LABELS)


@pytest.mark.parametrize(("name", "text", "sentence"), [(n, t, s) for n, _, t, s in BAD], ids=str)
def test_the_command_line_refuses_them_in_that_sentence_too(name: str, text: str, sentence: str) -> None:
    result = command(f"--{name.replace('_', '-')}", text)
    assert result.exit_code == 2
    assert sentence.format(repr(text)) in " ".join(result.stderr.split())


def test_the_command_line_has_every_option_with_its_default_and_help() -> None:
    shown = {option.name: option for option in cli.train.params}
    for name, option in OPTIONS.items():
        given = shown[name]
        assert given.default == option.default
        assert given.help is not None
        assert given.help.startswith(option.help)
    named = [option.name for option in cli.train.params if option.name in OPTIONS]
    assert named == list(OPTIONS)
    words = " ".join(command("--help-all").stdout.split())
    assert "[default: 32; 64 for more than 32 labels] [1<=x<=1024]" in words
    assert "[default: auto]" in words
    assert "|".join(MIXINGS) in words
    assert "[default: 2048; 1<=x<=1000000]" in words


def test_scikit_learn_has_every_option_but_those_on_rationales_with_its_default() -> None:
    parameters = TextClassifier().get_params()
    assert set(parameters) == set(OPTIONS) - {"rationale_weight", "rehearsal_rows", "seed"} | {
        "random_state",
        "columns",
    }
    for name in set(parameters) - {"random_state", "class_weight", "columns"}:
        assert parameters[name] == OPTIONS[name].default
    assert (parameters["random_state"], parameters["class_weight"], parameters["columns"]) == (0, None, None)


def test_weights_of_labels_may_stand_in_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text('{"billing": 2, "shipping": 0.5}')
    for given in (path, str(path)):
        assert from_options({"class_weight": given}).class_weight == {"billing": 2.0, "shipping": 0.5}
    path.write_text("[2]")
    with pytest.raises(ConfigError, match=re.escape(f"{path} must hold labels with their weights")):
        from_options({"class_weight": path})
    path.write_text("{2")
    with pytest.raises(ConfigError, match=re.escape(f"{path} cannot be read as JSON")):
        from_options({"class_weight": path})


def test_one_target_of_thresholds_is_enough() -> None:
    with pytest.raises(ConfigError, match="target_precision and target_recall both choose the thresholds"):
        from_options({"target_precision": 0.9, "target_recall": 0.9})


def test_there_is_a_layer_for_every_mixing() -> None:
    assert tuple(MIXERS) == MIXINGS
    assert OPTIONS["mixing"].kind == Choice(MIXINGS)


def test_the_options_are_known_without_pytorch() -> None:
    code = """
import json, sys
import textcls_training.config.resolve, textcls_training.cli.train
print(json.dumps(sorted({"torch", "numba", "scipy", "sklearn", "onnx"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_an_option_that_does_not_exist_is_told_with_one_that_may_be_meant() -> None:
    with pytest.raises(ConfigError, match=r"^Training has no option 'epoch'; did you mean 'epochs'\?$"):
        from_options({"epoch": 3})
    with pytest.raises(ConfigError, match=r"^Training has no option 'colour'; there are attention, batch_size, "):
        from_options({"colour": 3})


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_is_one_that_both_generators_take(seed: int) -> None:
    with pytest.raises(ConfigError, match=rf"^seed must be 0 to 9223372036854775807, not {seed}\.$"):
        TrainConfig(seed=seed)


@pytest.mark.parametrize("weight", [-1.0, math.inf])
def test_the_weight_of_rationales_is_a_finite_number_from_0(weight: float) -> None:
    with pytest.raises(ConfigError, match=rf"^rationale_weight must be a finite number from 0, not {weight}\.$"):
        TrainConfig(rationale_weight=weight)


@pytest.mark.parametrize("config", [{"embedding": "bits"}, {"model": ModelConfig(embedding="bits")}], ids=str)
def test_ngrams_of_an_embedding_by_bits_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^The bits embedding reads words only; leave out n-grams, or use"):
        TrainConfig(ngrams=(3,), **config)


def test_a_whole_model_and_an_option_of_the_model_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r"^Both a whole model and dim are given; leave one of them out"):
        TrainConfig(model=ModelConfig(dim=8), dim=8)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["table_rate", "rate", "mixing_rate", "bits_rate"])
def test_a_rate_is_finite_and_above_zero(name: str, rate: float) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} must be a finite number above 0, not {rate}\.$"):
        OptimConfig(**{name: rate})  # type: ignore[arg-type]


def test_a_step_needs_a_text() -> None:
    with pytest.raises(ConfigError, match=r"^batch_size must be at least 1, not 0\.$"):
        OptimConfig(batch_size=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mixing": "furrier"}, r"mixing must be one of none, pool, fourier, .*, not 'furrier'\."),
        ({"attention": "dot"}, r"attention must be one of norm, softmax, cosine, kernel, metric, not 'dot'\."),
        ({"values": "both"}, r"values must be one of token, mixed, not 'both'\."),
        ({"embedding": "letters"}, r"embedding must be one of rows, bits, not 'letters'\."),
        ({"dim": 0}, r"dim must be 1 to 1024, not 0\."),
        ({"dim": 1025}, r"dim must be 1 to 1024, not 1025\."),
        ({"seeds": 0}, r"seeds must be 1 to 64, not 0\."),
        ({"seeds": 65}, r"seeds must be 1 to 64, not 65\."),
        ({"seed_dropout": 0.5}, r"seed_dropout drops whole seeds, so it needs at least two of them\."),
        ({"dropout": 1.0}, r"dropout must be a share from 0 and below 1, not 1\.0\."),
        ({"dropout": -0.1}, r"dropout must be a share from 0 and below 1, not -0\.1\."),
        ({"seed_dropout": 1.0, "seeds": 2}, r"seed_dropout must be a share from 0 and below 1, not 1\.0\."),
        ({"seed_dropout": math.nan, "seeds": 2}, r"seed_dropout must be a share from 0 and below 1, not nan\."),
        ({"gate": math.nan}, r"gate must be a finite number, not nan\."),
        ({"gate": math.inf}, r"gate must be a finite number, not inf\."),
    ],
    ids=str,
)
def test_a_model_that_cannot_be_made_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}$"):
        ModelConfig(**fields)


def test_without_a_teacher_there_is_none_to_tune() -> None:
    with pytest.raises(ConfigError, match="tune_teacher tunes the teacher, and none is given"):
        TrainConfig(tune_teacher=True)


def test_values_of_a_mixing_layer_that_is_not_there_are_refused() -> None:
    with pytest.raises(ConfigError, match="values 'mixed' are those of a mixing layer, and there is none"):
        TrainConfig(values="mixed")
    assert TrainConfig(values="mixed", mixing="gmlp").values == "mixed"
