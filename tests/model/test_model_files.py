"""Whatever a model file is or says of itself: it works, or it is refused in one sentence, and nothing else happens."""

import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chance import draws
from tests.command_line import called
from tests.model_metadata import Metadata, metadata_of, with_metadata
from tests.service.processes import MAIN, PATIENCE
from tests.service.server import listening
from tests.service.server import service as service_of_classifier
from textcls import ArtifactError, Classifier
from textcls.cli import main
from textcls.model.labels import LABEL_CHARACTERS
from textcls.server.models import registry

GIB = 2**30


def refusal(data: bytes) -> str:
    """The sentence with which the content of a model file is refused."""
    with pytest.raises(ArtifactError, match=r"^tickets\.onnx") as caught:
        Classifier.from_bytes(data, Path("tickets.onnx"))
    said = str(caught.value)
    check_sentence(said)
    return said


def check_sentence(said: str) -> None:
    assert said.endswith(".")
    assert "\n" not in said


# What the metadata say


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": ["a", "b", "c", "d", "e", "f"]}, "6 labels, 7 numbers in the bias"),
        ({"labels": ["a", "b", "c", "d", "e", "f"], "bias": [0.0] * 6}, "name 6 labels, and its output"),
        ({"labels": ["a", "b", "c", "d", "e", "f", "a"]}, "two labels have the same name"),
        ({"labels": ["a", "b", "c", "d", "e", "f", 7]}, "labels contains something that is not a string"),
        ({"labels": ["a", "b", "c", "d", "e", "f", ""]}, "label number 6 is empty"),
        (
            {"labels": ["a", "b", "c", "d", "e", "f", "x" * (LABEL_CHARACTERS + 1)]},
            "label number 6 has 1,001 characters",
        ),
        ({"labels": ["a", "b", "c", "d", "e", "f", "\ud83d"]}, "an unpaired surrogate"),
        ({"labels": "abcdefg"}, "labels is not a list"),
        ({"labels": [], "bias": []}, "there are no labels"),
        ({"threshold": float("nan")}, "threshold holds 'nan', which is not a finite number"),
        ({"threshold": 5}, "the threshold is 5, and must be a probability"),
        ({"threshold": True}, "threshold holds 'True', which is not a finite number"),
        ({"threshold": "0.5"}, "threshold holds '0.5', which is not a finite number"),
        ({"temperature": 0}, "the temperature is 0, and must be above 0"),
        ({"temperature": float("inf")}, "temperature holds 'inf'"),
        ({"temperature": 3.0}, "not those of its logits and the temperature"),
        ({"bias": [float("nan")] * 7}, "bias holds 'nan'"),
        ({"bias": [1e300] * 7}, "bias holds '1e+300'"),
        ({"bias": [1.0] * 7}, "its bias and contributions do not add up to its logits"),
        ({"max_tokens": 0}, "max_tokens is '0', and must be a whole number from 1 to 1,000,000"),
        ({"max_tokens": 10**9}, "max_tokens is '1000000000'"),
        ({"max_tokens": 64.0}, "max_tokens is '64.0'"),
        ({"max_tokens": 63}, "damaged"),
        ({"max_tokens": 400}, "damaged"),
        ({"features": {"bigrams": 1, "ngram_sizes": [3, 5], "max_chars": 12}}, "features must be"),
        ({"features": {"bigrams": True, "ngram_sizes": [3], "max_chars": 12}}, "tickets.onnx"),
        (
            {"features": {"bigrams": False, "ngram_sizes": [3, 5], "max_chars": 12}},
            "do not add up to its contributions",
        ),
        ({"model": {"attention": "kernel"}}, "do not add up to its contributions"),
        ({"model": {}}, "tickets.onnx"),
        ({"model": []}, "model is not an object"),
        ({"training": None}, "training is not an object"),
        ({"training": {"\ud83d": 1}}, "an unpaired surrogate"),
        ({"training": {"note": "x" * 16_000_000}}, "and 16,000,000 are the most"),
        ({"text_columns": "text"}, "text_columns is not a list"),
        ({"text_columns": [None]}, "text_columns contains something that is not a string"),
        ({"text_columns": []}, "must name columns"),
        ({"label_column": None}, "must name columns"),
        ({"task": "multi-label"}, "none that this version of textcls knows"),
        ({"format_version": True}, "format_version is 'True'"),
        ({"format_version": 0}, "format_version is '0'"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_metadata_that_the_graph_or_reason_contradicts_are_refused(
    model_path: Path, change: Metadata, said: str
) -> None:
    assert said in refusal(with_metadata(model_path, {**metadata_of(model_path), **change}))


SEVEN = [0.5] * 7


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format_version": 1}, "the task is none that this version of textcls knows"),
        ({"format_version": 5}, "has format version 5, and this textcls reads up to 4: upgrade"),
        ({"task": "single-label"}, "the task is none that this version of textcls knows"),
        ({"task": "several"}, "the task is none that this version of textcls knows"),
        ({"task": ["multi-label"]}, "the task is none that this version of textcls knows"),
        ({"thresholds": None}, "thresholds is not a list"),
        ({"thresholds": SEVEN[1:]}, "7 labels, 6 numbers in thresholds"),
        ({"thresholds": [*SEVEN[1:], 1.2]}, "thresholds contain a number that is not a probability"),
        ({"thresholds": [*SEVEN[1:], -0.1]}, "thresholds contain a number that is not a probability"),
        ({"thresholds": [*SEVEN[1:], float("nan")]}, "thresholds holds 'nan', which is not a finite number"),
        ({"thresholds": [*SEVEN[1:], True]}, "thresholds holds 'True', which is not a finite number"),
        ({"scale": "1"}, "scale is not a list"),
        ({"scale": [*SEVEN, 0.5]}, "7 labels, 8 numbers in scale"),
        ({"scale": [*SEVEN[1:], 0]}, "scale contains a number that is not above 0"),
        ({"scale": [*SEVEN[1:], "1"]}, "scale holds '1', which is not a finite number"),
        ({"scale": [9.0] * 7}, "not those of its logits and the scale and shift of its metadata"),
        ({"shift": [3.0] * 7}, "not those of its logits and the scale and shift of its metadata"),
        ({"shift": [*SEVEN[1:], float("inf")]}, "shift holds 'inf', which is not a finite number"),
        ({"bias": [1.0] * 7}, "its bias and contributions do not add up to its logits"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_metadata_of_several_labels_that_the_graph_or_reason_contradicts_are_refused(
    several_labels_path: Path, change: Metadata, said: str
) -> None:
    found = refusal(with_metadata(several_labels_path, {**metadata_of(several_labels_path), **change}))
    assert said in found


@pytest.mark.parametrize("missing", ["thresholds", "scale", "shift", "task"])
def test_a_model_of_several_labels_without_one_of_their_numbers_is_refused(
    several_labels_path: Path, missing: str
) -> None:
    metadata = metadata_of(several_labels_path)
    del metadata[missing]
    assert f"there is no '{missing}'" in refusal(with_metadata(several_labels_path, metadata))


def test_a_threshold_at_either_end_is_no_damage(model_path: Path) -> None:
    for threshold in (0, 1, 0.5, None):
        data = with_metadata(model_path, {**metadata_of(model_path), "threshold": threshold})
        assert Classifier.from_bytes(data, model_path).info.threshold == threshold


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["\ud83d", "", "\n", float("nan"), float("inf"), 0, 1, -1, 2**63, 10**400]),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something in the metadata that can be exchanged."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths_of(value[key], (*path, key))


@st.composite
def mutations(draw: st.DrawFn) -> Callable[[Metadata], Metadata]:
    """Exchange, remove or double something in the metadata, once or several times."""
    steps = draw(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("xrd"), values), min_size=1, max_size=3))

    def mutate(metadata: Metadata) -> Metadata:
        for number, kind, value in steps:
            places = sorted(paths_of(metadata), key=str)
            *outer, last = places[number % len(places)]
            holder: Any = metadata
            for key in outer:
                holder = holder[key]
            if kind == "r":
                del holder[last]
            elif kind == "d" and isinstance(holder, list):
                holder.append(holder[last])
            else:
                holder[last] = value
            if not metadata:
                break
        return metadata

    return mutate


@pytest.fixture(scope="module")
def service_of(model_path: Path) -> Iterator[Callable[[Classifier], httpx.Client]]:
    """A real server, whose model can be exchanged."""
    service = service_of_classifier(Classifier.load(model_path))
    with listening(service) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:

        def exchange(classifier: Classifier) -> httpx.Client:
            service.generation = registry.generation(2, [registry.serve(classifier, "tickets", digest="0" * 64)])
            return client

        yield exchange


@settings(max_examples=draws(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutate=mutations())
@pytest.mark.parametrize("kind", ["model_path", "several_labels_path"])
def test_a_model_with_any_metadata_is_refused_or_all_routes_answer(
    kind: str,
    request: pytest.FixtureRequest,
    service_of: Callable[[Classifier], httpx.Client],
    mutate: Callable[[Metadata], Metadata],
) -> None:
    path = request.getfixturevalue(kind)
    try:
        classifier = Classifier.from_bytes(with_metadata(path, mutate(metadata_of(path))), path)
    except ArtifactError as error:
        check_sentence(str(error))
        return
    client, columns = service_of(classifier), classifier.info.text_columns
    texts: list[Any] = ["my card was charged twice", "", "word " * 100]
    if len(columns) > 1:
        texts = [dict.fromkeys(columns, text) for text in texts]
    for explain in (False, True):
        body = {"inputs": texts, "explain": explain}
        assert client.post("/v1/classify", json=body).status_code == 200
    classifier.parts("my card was charged twiiice")
    assert client.get("/v1/models").status_code == 200
    assert client.get("/metrics").status_code == 200


# What a file is


def run(*arguments: str | Path, memory: int = 6 * GIB) -> tuple[int, str]:
    """The exit code of a command that must end at once, and what it said; it may have `memory` bytes of addresses."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stderr


@pytest.fixture
def odd_files(tmp_path: Path) -> Iterator[dict[Path, str]]:
    """What is not a model file, and what is said of each: a device, a pipe, a socket, and a file that is too large."""
    pipe, place, large = (tmp_path / f"{name}.onnx" for name in ("pipe", "socket", "large"))
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(3 * GIB)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        said = {
            path: f"{path} is not a regular file; copy the model to one." for path in (Path("/dev/zero"), pipe, place)
        }
        yield {**said, large: f"{large} has 3,221,225,472 bytes, and a model file may have at most 2,000,000,000"}


def test_what_is_no_file_of_bounded_size_is_refused_at_once(odd_files: dict[Path, str], tmp_path: Path) -> None:
    for path, said in odd_files.items():
        with pytest.raises(ArtifactError, match=re.escape(said)):
            Classifier.load(path)
    (tmp_path / "new.csv").write_text("text\nhello\n")
    predict = [("predict", path, "new.csv", "-o", "answers.csv") for path in odd_files]
    serve = [("serve", f"odd={path}", "--port", "0") for path in odd_files]
    done = called(*predict, *serve, folder=tmp_path, memory=6 * GIB)
    for (status, _, told), said in zip(done, [*odd_files.values()] * 2, strict=True):
        assert (status, said in told, told.count("\n")) == (4, True, 1)


def test_a_model_larger_than_the_operator_allows_is_refused_before_it_is_read(model_path: Path) -> None:
    status, told = run("serve", model_path, "--port", "0", "--max-model-bytes", "100000")
    size = model_path.stat().st_size
    assert status == 4
    limit = "a model file may have at most 100,000; --max-model-bytes says so."
    assert told == f"Error: {model_path} has {size:,} bytes, and {limit}\n"


def test_a_model_whose_metadata_tell_nothing_of_its_training_is_inspected_in_one_sentence(
    model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(with_metadata(model_path, {**metadata_of(model_path), "training": {"rows": "many"}}))
    found = CliRunner().invoke(main, ["inspect", str(path)])
    assert found.exit_code == 4
    assert "its metadata tell something else of the training than textcls writes" in found.output
