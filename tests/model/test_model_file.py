"""A saved model is changed field by field: what is not exchanged stays, and what is written is what ONNX reads."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls import ArtifactError, Classifier
from textcls.model import artifact
from textcls.model.model_file import onnx_file
from textcls.model.model_file.protobuf import bytes_field, fields, varint_field


@given(number=st.integers(1, 2**20), value=st.integers(0, 2**63), content=st.binary(max_size=300))
def test_fields_are_read_as_they_were_written(number: int, value: int, content: bytes) -> None:
    message = varint_field(number, value) + bytes_field(number + 1, content)
    first, second = fields(memoryview(message))
    assert (first.number, second.number, bytes(second.content)) == (number, number + 1, content)
    assert bytes(first.whole) + bytes(second.whole) == message


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(message: bytes) -> None:
    try:
        found = list(fields(memoryview(message)))
    except ValueError:
        return
    assert b"".join(bytes(field.whole) for field in found) == message


@pytest.mark.parametrize("name", ["model_v1.onnx", "model_v2.onnx", "model_v2_prototypes.onnx", "model_v3.onnx"])
def test_a_file_with_nothing_new_is_the_same_file(model_path: Path, name: str) -> None:
    path = model_path.with_name(name)
    data = path.read_bytes()
    assert onnx_file.exchanged(data, Classifier.load(path).info, path) == data


def test_constants_and_metadata_are_exchanged_as_onnx_would(prototypes: Classifier, prototypes_path: Path) -> None:
    data = prototypes_path.read_bytes()
    bias = np.arange(len(prototypes.labels), dtype=np.float32)
    info = replace(prototypes.info, bias=tuple(bias.tolist()))
    ours = onnx_file.exchanged(data, info, prototypes_path, {artifact.LABEL_BIAS: bias})
    theirs = onnx.load_model_from_string(data)
    (tensor,) = [one for one in theirs.graph.initializer if one.name == artifact.LABEL_BIAS]
    tensor.CopyFrom(onnx.numpy_helper.from_array(bias, artifact.LABEL_BIAS))
    theirs.metadata_props[0].value = info.to_metadata()[artifact.METADATA_KEY]
    assert ours == theirs.SerializeToString(deterministic=True)
    assert Classifier.from_bytes(ours, prototypes_path).explain("").logit_values == pytest.approx(bias, abs=1e-6)


@pytest.mark.parametrize("damage", [b"no model", b"\x3a\xff\xff\xff\x7f", b"\x0b"])
def test_what_is_no_onnx_file_is_refused_in_a_sentence(damage: bytes) -> None:
    with pytest.raises(ArtifactError, match="is not an ONNX file, or it is damaged"):
        onnx_file.metadata(damage, Path("model.onnx"))


def test_a_missing_constant_is_refused_in_a_sentence(model_path: Path) -> None:
    with pytest.raises(ArtifactError, match="has no constant 'support_rows'"):
        onnx_file.constants(model_path.read_bytes(), {"support_rows": np.float16}, model_path)


def external(model: onnx.ModelProto, tensor: onnx.TensorProto) -> bytes:
    """The model with a constant of it in another file."""
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "run/secrets/key"
    return bytes(model.SerializeToString())


def test_a_model_that_asks_for_another_file_is_not_opened(model_path: Path, tmp_path: Path) -> None:
    def tensors(model: onnx.ModelProto) -> list[onnx.TensorProto]:
        (branch,) = [node for node in model.graph.node if node.op_type == "If"]
        inner = [
            found
            for attribute in branch.attribute
            for node in attribute.g.node
            for found in node.attribute
            if found.HasField("t")
        ]
        return [model.graph.initializer[0], *branch.attribute[0].g.initializer[:1], *(found.t for found in inner[:1])]

    count = len(tensors(onnx.load(model_path)))
    assert count >= 2
    for number in range(count):
        model = onnx.load(model_path)
        (tmp_path / "m.onnx").write_bytes(external(model, tensors(model)[number]))
        with pytest.raises(ArtifactError, match=r"m\.onnx keeps constants in other files"):
            Classifier.load(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("operator", "domain", "said"),
    [
        ("Loop", "", "has the operator 'Loop'"),
        ("RandomUniformLike", "", "has the operator 'RandomUniformLike'"),
        ("Add", "com.example", "has the operator 'com.example.Add'"),
        ("Add" * 100, "", "has the operator 'Add"),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["in the graph", "in a branch"])
def test_a_model_with_an_operator_that_we_never_write_is_not_opened(
    model_path: Path, tmp_path: Path, operator: str, domain: str, said: str, inside: bool
) -> None:
    model = onnx.load(model_path)
    graph = model.graph
    if inside:
        (branch,) = [node for node in graph.node if node.op_type == "If"]
        graph = branch.attribute[1].g
    graph.node.append(onnx.helper.make_node(operator, ["text"], ["text again"], domain=domain))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ArtifactError) as caught:
        Classifier.load(tmp_path / "m.onnx")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_model_with_functions_of_its_own_is_not_opened(model_path: Path, tmp_path: Path) -> None:
    model = onnx.load(model_path)
    node = onnx.helper.make_node("Add", ["a", "a"], ["b"])
    model.functions.append(
        onnx.helper.make_function("own", "Twice", ["a"], ["b"], [node], [onnx.helper.make_opsetid("", 18)])
    )
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ArtifactError, match="has functions of its own"):
        Classifier.load(tmp_path / "m.onnx")
