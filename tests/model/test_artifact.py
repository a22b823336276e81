"""The model file: what is refused and how, how it is written, and that its metadata survive the way there and back."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from textcls import ArtifactError, Classifier, ModelInfo
from textcls.model.artifact import FORMAT_VERSION, METADATA_KEY
from textcls.model.features import FeatureConfig

Change = Callable[[dict[str, Any]], object]


def refusal(path: Path) -> str:
    """The one sentence with which `path` is refused; it names the file."""
    with pytest.raises(ArtifactError, match=re.escape(str(path))) as caught:
        Classifier.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def write_with_metadata(source: Path, target: Path, metadata: str) -> Path:
    model = onnx.load(source)
    helper.set_model_props(model, {METADATA_KEY: metadata})
    onnx.save(model, target)
    return target


def identity_model(path: Path, metadata: dict[str, str] | None = None) -> Path:
    """A valid ONNX file that does nothing with text."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, path)
    return path


@pytest.fixture
def damaged(model_path: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """A copy of the small model whose metadata a function has changed."""

    def write(change: Change) -> Path:
        metadata = json.loads(Classifier.load(model_path).info.to_metadata()[METADATA_KEY])
        change(metadata)
        return write_with_metadata(model_path, tmp_path / "damaged.onnx", json.dumps(metadata))

    return write


# Files that are not models


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "no.onnx") == f"There is no model file {tmp_path / 'no.onnx'}."


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} is a folder: name a model file in it."
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.onnx").touch()
    assert refusal(tmp_path).endswith(f"name a model file in it, such as {tmp_path / '1' / 'model.onnx'}.")


def test_a_file_name_that_no_system_allows_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("a" * 300)).startswith("There is no model file ")


@pytest.mark.parametrize("content", [b"text,label\na,b\n", b"{}", b"PK\x03\x04" + bytes(99)])
def test_a_table_where_the_model_belongs_is_told_from_a_damaged_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tickets.xlsx"
    path.write_bytes(content)
    assert "is not a model but a table or a text: name the model first, and then the rows" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"\x00", bytes(range(256)) * 40])
def test_bytes_that_are_no_onnx_file_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "random.onnx"
    path.write_bytes(content)
    assert "is not a model that ONNX Runtime can read" in refusal(path)


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_a_model_file_that_was_cut_off_is_refused(model_path: Path, tmp_path: Path, share: float) -> None:
    content = model_path.read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(content[: int(len(content) * share)])
    assert "damaged" in refusal(path)


def test_a_model_file_without_its_last_byte_is_refused(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(model_path.read_bytes()[:-1])
    assert "damaged" in refusal(path)


def test_an_onnx_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    assert "an ONNX file but not a textcls model" in refusal(identity_model(tmp_path / "other.onnx"))


def test_another_graph_under_our_metadata_is_refused(model_path: Path, tmp_path: Path) -> None:
    metadata = Classifier.load(model_path).info.to_metadata()
    other = identity_model(tmp_path / "other.onnx", metadata)
    assert "is damaged: its graph does not take one input 'text'" in refusal(other)


# Metadata


def test_a_newer_format_is_refused_with_the_way_out(damaged: Callable[[Change], Path]) -> None:
    message = refusal(damaged(lambda metadata: metadata.update(format_version=FORMAT_VERSION + 1)))
    assert f"format version {FORMAT_VERSION + 1}" in message
    assert "pip install --upgrade textcls" in message


def test_a_newer_format_is_told_from_damage_even_if_its_fields_are_others(model_path: Path, tmp_path: Path) -> None:
    newer = write_with_metadata(model_path, tmp_path / "newer.onnx", '{"format_version": 7, "classes": []}')
    assert "format version 7" in refusal(newer)


@pytest.mark.parametrize("metadata", ["", "{", "[]", "null", "7", '{"labels": ["a", "b"]}', "[" * 100_000])
def test_metadata_that_are_no_json_object_with_a_version_are_damaged(
    model_path: Path, tmp_path: Path, metadata: str
) -> None:
    assert "damaged" in refusal(write_with_metadata(model_path, tmp_path / "damaged.onnx", metadata))


@pytest.mark.parametrize(
    "name",
    ["labels", "bias", "temperature", "max_tokens", "features", "model", "text_columns", "label_column", "training"],
)
def test_metadata_without_a_field_are_damaged_and_the_field_is_named(
    damaged: Callable[[Change], Path], name: str
) -> None:
    message = refusal(damaged(lambda metadata: metadata.pop(name)))
    assert "damaged" in message
    assert repr(name) in message


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": "one"},
        {"format_version": float("inf")},
        {"labels": None},
        {"labels": ["only"]},
        {"bias": ["x"] * 7},
        {"bias": [0.0] * 6},
        {"bias": 5},
        {"features": 5},
        {"features": {}},
        {"features": {"bigrams": True, "ngram_sizes": [3], "max_chars": 12, "other": 1}},
        {"features": {"bigrams": True, "ngram_sizes": [99], "max_chars": 12}},
        {"max_tokens": "many"},
        {"threshold": "high"},
    ],
    ids=str,
)
def test_metadata_with_a_field_that_cannot_be_are_damaged(
    damaged: Callable[[Change], Path], change: dict[str, Any]
) -> None:
    assert "damaged" in refusal(damaged(lambda metadata: metadata.update(change)))


names = st.text(max_size=12)
plain_values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names
infos = st.builds(
    ModelInfo,
    labels=st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=5, unique=True).map(tuple),
    bias=st.lists(st.floats(-9, 9, width=32), min_size=5, max_size=5).map(tuple),
    temperature=st.floats(0.01, 100),
    max_tokens=st.integers(1, 100_000),
    features=st.builds(
        FeatureConfig,
        bigrams=st.booleans(),
        ngram_sizes=st.sets(st.integers(2, 8)).map(lambda sizes: tuple(sorted(sizes))),
        max_chars=st.integers(2, 40),
    ),
    model=st.dictionaries(names, plain_values),
    text_columns=st.lists(names, min_size=1).map(tuple),
    label_column=names,
    training=st.dictionaries(names, plain_values | st.dictionaries(names, plain_values)),
    threshold=st.none() | st.floats(0, 1),
).map(lambda info: ModelInfo(**{**fields_of(info), "bias": info.bias[: len(info.labels)]}))


def fields_of(info: ModelInfo) -> dict[str, Any]:
    return {name: getattr(info, name) for name in ModelInfo.__dataclass_fields__}


@given(info=infos)
def test_metadata_come_back_as_they_went(info: ModelInfo) -> None:
    assert ModelInfo.from_metadata(info.to_metadata(), Path("model.onnx")) == info


def test_the_same_info_gives_the_same_metadata_whatever_the_order_of_its_fields(classifier: Classifier) -> None:
    info = classifier.info
    turned = ModelInfo(**{**fields_of(info), "training": dict(reversed(list(info.training.items())))})
    assert list(turned.training) != list(info.training)
    assert turned.to_metadata() == info.to_metadata()


def test_metadata_are_one_json_object_under_one_key(classifier: Classifier) -> None:
    metadata = classifier.info.to_metadata()
    assert list(metadata) == ["textcls"]
    of_others = {"scale", "shift", "thresholds", "prototypes", "example", "columns"}
    assert set(json.loads(metadata["textcls"])) == set(ModelInfo.__dataclass_fields__) - of_others
