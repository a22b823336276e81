"""Labels that are taught to a service and taken back: in answers, in the file, and in what is told of it."""

import fcntl
import json
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.model_metadata import metadata_of, with_metadata
from tests.service.clients import ADMIN, KEYS, bearer, message, numbers
from tests.service.processes import PATIENCE, until
from tests.service.server import lines, service, serving
from tests.service.teaching import EXAMPLES, ON, TEXT, best, digest, listed, take_back, taught, teach
from textcls import Classifier
from textcls.model.model_file import onnx_file
from textcls.server.models import rewriting
from textcls.server.models.store import GenerationStore
from textcls.server.service import Service
from textcls.server.settings import Settings
from textcls.server.system import memory


@pytest.fixture
def model(prototypes_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model of prototypes that may be rewritten."""
    return Path(shutil.copy(prototypes_path, tmp_path / "tickets.onnx"))


@contextmanager
def teaching(
    *models: str | Path, settings: Settings = ON, keys: str = ""
) -> Iterator[tuple[httpx.Client, GenerationStore]]:
    """A client of a service that can be taught, in a thread, and its store."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTCLS_ADMIN_KEY", f"desk:{ADMIN}")
        patch.setenv("TEXTCLS_API_KEYS", keys)
        store = GenerationStore(Path(folder), list(map(str, models)), settings)
        store.publish()
        with serving(Service.of(store, settings)) as client:
            yield client, store


def test_a_label_is_answered_and_on_disk_once_it_is_taught_and_gone_without_a_trace_once_it_is_taken_back(
    model: Path, prototypes_path: Path
) -> None:
    with teaching(model) as (client, _):
        assert best(client) != "animals"
        said = teach(client).json()
        assert (said["label"], said["new"], said["examples"], said["changed"]) == ("animals", True, 3, True)
        assert (said["generation"], said["workers"], said["workers_waiting"]) == (2, 1, 0)
        assert said["calibration"].endswith("until textcls evaluate has seen rows of that label.")
        assert best(client) == "animals"
        assert said["sha256"] == digest(model)
        assert Classifier.load(model).predict(TEXT).label == "animals"
        assert taught(client) == {"animals": 3}
        back = take_back(client).json()
        assert (back["left"], back["sha256"], back["generation"]) == (False, digest(prototypes_path), 3)
        assert model.read_bytes() == prototypes_path.read_bytes()
        assert best(client) != "animals"
        assert "animals" not in listed(client)


def test_the_same_lesson_twice_changes_nothing_the_second_time(model: Path) -> None:
    with teaching(model) as (client, _):
        first, second = teach(client).json(), teach(client).json()
        assert (second["changed"], second["generation"], second["sha256"]) == (False, 2, first["sha256"])
        found = numbers(client)
    for result, times in (("done", 1), ("unchanged", 1), ("refused", 0)):
        assert found[f'textcls_lessons_total{{kind="taught",model="tickets",result="{result}"}}'] == times


def test_better_examples_of_a_label_replace_those_that_it_was_taught_and_not_those_of_its_training(
    model: Path, prototypes_path: Path
) -> None:
    with teaching(model) as (client, _):
        assert teach(client, "billing").json()["new"] is False
        assert teach(client, "billing", ["zebra crossing", "zebra crossing"]).json()["examples"] == 1
        assert taught(client)["billing"] == 1
        assert take_back(client, "billing").json()["left"] is True
        assert model.read_bytes() == prototypes_path.read_bytes()


def test_a_label_may_hold_what_a_path_divides(model: Path) -> None:
    with teaching(model) as (client, _):
        label = "a/b?c%2F d\n語"
        assert teach(client, label).status_code == 200
        assert label in listed(client)
        assert take_back(client, "a%2Fb%3Fc%252F%20d%0A%E8%AA%9E").json()["label"] == label
        assert label not in listed(client)


def test_examples_of_several_columns_are_rows_as_those_that_are_classified(model: Path, prototypes_path: Path) -> None:
    model.write_bytes(
        with_metadata(prototypes_path, metadata_of(prototypes_path) | {"text_columns": ["title", "body"]})
    )
    with teaching(model) as (client, _):
        address, admin = "/v1/models/tickets/labels", bearer(ADMIN)
        rows = [{"title": "zebra", "body": "an okapi"}, {"title": "", "body": "three zebras"}]
        answer = client.post(address, json={"label": "animals", "examples": rows}, headers=admin)
        assert (answer.status_code, answer.json()["examples"]) == (200, 2)
        asked = {"inputs": {"title": "an okapi", "body": "zebra"}}
        assert client.post("/v1/classify", json=asked).json()["results"][0]["label"] == "animals"
        answer = client.post(address, json={"label": "animals", "examples": ["zebra"]}, headers=admin)
        assert "examples[0] is one text, and the model 'tickets' was trained on" in message(answer, 422)


def test_in_a_tree_the_whole_name_of_a_label_is_told(model: Path, prototypes_path: Path) -> None:
    labels = [f"desk > {label}" for label in metadata_of(prototypes_path)["labels"]]
    model.write_bytes(with_metadata(prototypes_path, metadata_of(prototypes_path) | {"labels": labels}))
    with teaching(model) as (client, _):
        assert teach(client, label="desk > animals").json()["new"]
        assert take_back(client, "animals").json()["label"] == "desk > animals"
        assert "write its whole path, such as 'desk > animals'" in message(teach(client), 422)


def test_who_taught_what_is_told_in_the_audit_trail_without_a_text(
    model: Path, trail: pytest.LogCaptureFixture
) -> None:
    before = digest(model)
    with teaching(model) as (client, _):
        teach(client)
        take_back(client, "billing")
        after = digest(model)
    (done, refused) = lines(trail)
    assert done["msg"] % done["args"] == "A label was taught"
    wanted = {"by": "http", "key": "desk", "result": "done", "model": "tickets", "label": "animals", "examples": 3}
    wanted |= {"before": before, "after": after, "generation": 2, "client": "127.0.0.1"}
    assert {name: done[name] for name in wanted} == wanted
    assert (refused["result"], refused["key"]) == ("refused", "desk")
    assert "comes from training and was never taught" in refused["reason"]
    assert "zebra" not in str([vars(record) for record in trail.records])


def test_what_was_taught_is_counted_as_any_other_label(model: Path) -> None:
    with teaching(model) as (client, _):
        teach(client)
        best(client)
        assert numbers(client)['textcls_predictions_total{label="animals",model="tickets"}'] == 1


@pytest.mark.parametrize("keeps", [True, False])
def test_examples_are_kept_and_listed_only_where_the_file_keeps_texts(model: Path, keeps: bool) -> None:
    info, data = Classifier.load(model).info, model.read_bytes()
    assert info.prototypes is not None
    text = "a text" if keeps else None
    support = tuple(tuple(replace(row, text=text) for row in rows) for rows in info.prototypes.support)
    prototypes = replace(info.prototypes, keeps_texts=keeps, support=support)
    model.write_bytes(onnx_file.exchanged(data, replace(info, prototypes=prototypes), model))
    with teaching(model) as (client, _):
        teach(client)
        found = client.get("/v1/models/tickets/labels", headers=bearer(ADMIN)).json()["labels"]
    texts = {label["label"]: label.get("texts") for label in found}
    assert (texts["animals"], texts["billing"]) == ((EXAMPLES, []) if keeps else (None, None))
    assert (b"zebra crossing" in model.read_bytes()) == keeps


# Who may, and where


def test_teaching_needs_the_admin_key_and_has_to_be_switched_on(model: Path, classifier: Classifier) -> None:
    with teaching(model, keys=KEYS[0]) as (client, _):
        for key in ({}, bearer(KEYS[0])):
            assert client.post("/v1/models/tickets/labels", json={}, headers=key).status_code == 401
            assert client.delete("/v1/models/tickets/labels/billing", headers=key).status_code == 401
            assert client.get("/v1/models/tickets/labels", headers=key).status_code == 401
    with teaching(model, settings=Settings()) as (client, _):
        assert "--teaching" in message(teach(client), 403)
        assert "--teaching" in message(take_back(client), 403)
        assert listed(client)["billing"] == 0
        assert "teachable" not in client.get("/v1/models").json()["models"][0]
    with serving(service(classifier, ON)) as client:
        assert "--admin-key-file" in message(teach(client), 403)


def test_the_list_of_models_says_which_can_be_taught(model: Path, model_path: Path) -> None:
    with teaching(model, model_path) as (client, _):
        cards = client.get("/v1/models").json()["models"]
        assert [card.get("teachable") for card in cards] == [True, None]
        assert "--head prototypes" in message(teach(client, model="model_v1"), 422)
        assert "--head prototypes" in message(client.get("/v1/models/model_v1/labels", headers=bearer(ADMIN)), 422)
        assert "no model of this name" in message(teach(client, model="other"), 404)


READ_ONLY = """
import os, sys
from pathlib import Path
from textcls import Classifier, SurroundingsError
from textcls.server.models import teaching
from textcls.server.models.store import GenerationStore
from textcls.server.settings import Settings
Classifier.load(sys.argv[1])
if os.geteuid() == 0:
    os.setuid(65534)  # Root may write everywhere.
os.environ["TEXTCLS_ADMIN_KEY"] = 16 * "x"
store = GenerationStore(Path(sys.argv[2]), [sys.argv[1]], Settings(teaching=True))
store.publish()
served = store.load().generation.get(None)
try:
    teaching.learn(store, served, teaching.Lesson("tickets", "animals", ["zebra"]))
except SurroundingsError as error:
    print(store.number(), error)
"""


def test_where_the_file_cannot_be_rewritten_a_sentence_says_what_to_do(prototypes_path: Path) -> None:
    # Not below the folder of the tests, which is closed to other users.
    with tempfile.TemporaryDirectory() as place:
        folder, shared = Path(place) / "models", Path(place) / "run"
        folder.mkdir()
        shared.mkdir()
        path = Path(shutil.copy(prototypes_path, folder / "tickets.onnx"))
        for each, mode in ((Path(place), 0o755), (path, 0o644), (shared, 0o777), (folder, 0o555)):
            each.chmod(mode)
        command = [sys.executable, "-c", READ_ONLY, str(path), str(shared)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=place)
        folder.chmod(0o755)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(
            f"1 What is taught is kept in {path}, whose folder cannot be written to (Permission"
        )
        assert "mount it as a writable volume" in done.stdout
        assert list(folder.iterdir()) == [path]


# What is refused


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 422, 'such as {"label": "refunds"'),
        (b"[]", 422, "must be a JSON object"),
        ({"label": "a"}, 422, "examples is missing"),
        (
            {"label": "a", "example": ["b"]},
            422,
            "example is not a field of this request; its fields are label, examples",
        ),
        ({"label": "a", "examples": []}, 422, "at least one text"),
        ({"label": "a", "examples": [7]}, 422, "examples[0] must be a text"),
        ({"label": "", "examples": ["b"]}, 422, "label must not be empty."),
        ({"label": " .. ", "examples": ["b"]}, 422, "could not be taken back by its address"),
        ({"label": " ", "examples": ["b"]}, 422, "is empty"),
        ({"label": "a" * 1001, "examples": ["b"]}, 422, "1,001 characters"),
        ({"label": "a", "examples": [" \n"]}, 422, "contains no word or symbol"),
        ({"label": "a", "examples": ["b\ud83d"]}, 422, "half a character"),
        ({"label": "a", "examples": ["b", "c" * 6000]}, 413, "examples[1] has 6,000 characters, and max_characters"),
        ({"label": "a", "examples": [str(i) for i in range(1001)]}, 413, "the maximum is 1,000"),
        ({"label": "a", "examples": ["b" * 4000] * 20}, 413, "max_body_bytes"),
    ],
)
def test_what_cannot_be_taught_is_refused_in_a_sentence(
    refusing: tuple[httpx.Client, Path], body: Any, status: int, said: str
) -> None:
    client, path = refusing
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**bearer(ADMIN), "content-type": "application/json"}
    before = digest(path)
    assert said in message(client.post("/v1/models/tickets/labels", content=content, headers=headers), status)
    assert digest(path) == before


@pytest.fixture(scope="module")
def refusing(prototypes_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Path]]:
    """A client of a service with low limits, and the file of its model."""
    path = Path(shutil.copy(prototypes_path, tmp_path_factory.mktemp("refusing") / "tickets.onnx"))
    settings = Settings(teaching=True, max_characters=5_000, max_body_bytes=60_000)
    with teaching(path, settings=settings) as (client, _):
        yield client, path


def test_what_is_taught_makes_files_so_much_larger_and_no_more(model: Path) -> None:
    settings = Settings(teaching=True, max_taught_bytes=800)
    with teaching(model, settings=settings) as (client, store):
        size = model.stat().st_size
        statuses = [teach(client, f"label {i}", ["zebra crossing"]).status_code for i in range(12)]
        assert statuses == sorted(statuses)
        assert set(statuses) == {200, 413}
        assert model.stat().st_size <= size + 800
        assert "max_taught_bytes, which is 800" in message(teach(client, "more", ["zebra"]), 413)
        # Somebody else's file is as large as it is, and what can be taught begins anew.
        store.publish()
        assert teach(client, "more", ["zebra"]).status_code == 200
    assert memory.needed(settings, size) > memory.needed(Settings(), size) + 30 * size


def test_labels_that_must_be_the_same_can_be_taught_and_no_others(model: Path) -> None:
    with teaching(model, settings=Settings(teaching=True, same_labels=True)) as (client, _):
        before = digest(model)
        assert "1 added 'animals', 0 removed), and same_labels is set" in message(teach(client), 409)
        assert digest(model) == before
        assert teach(client, "billing").status_code == 200


# Beside others who exchange the file


def test_a_file_that_somebody_has_replaced_is_not_overwritten(model: Path, prototypes_path: Path) -> None:
    with teaching(model) as (client, _):
        teach(client)
        shutil.copy(prototypes_path, beside := model.with_suffix(".new"))
        beside.replace(model)
        assert "reload first, then try again" in message(teach(client, "more"), 409)
        assert model.read_bytes() == prototypes_path.read_bytes()
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).json()["generation"] == 3
        assert teach(client, "more").status_code == 200
        assert list(taught(client)) == ["more"]


def test_a_file_keeps_its_rights_and_a_link_stays_one(model: Path) -> None:
    model.chmod(0o640)
    link = model.with_name("linked.onnx")
    link.symlink_to(model)
    with teaching(link) as (client, _):
        assert teach(client, model="linked").status_code == 200
    assert link.is_symlink()
    assert stat.S_IMODE(model.stat().st_mode) == 0o640
    assert "animals" in Classifier.load(model).labels
    assert list(model.parent.glob(".textcls-*")) == []


def test_a_file_under_two_names_is_one_file(model: Path, model_path: Path) -> None:
    with teaching(f"one={model}", f"two={model}", model_path) as (client, _):
        before = {card["name"]: card["sha256"] for card in client.get("/v1/models").json()["models"]}
        assert teach(client, model="two").status_code == 200
        after = {card["name"]: card["sha256"] for card in client.get("/v1/models").json()["models"]}
        assert after == {**before, "one": digest(model), "two": digest(model)}
        assert take_back(client, model="one").status_code == 200


def test_what_the_service_has_written_itself_is_no_replaced_file_to_its_watch(model: Path) -> None:
    with teaching(model) as (client, store):
        teach(client)
        assert store.files() == store.published_files()


def test_models_that_are_the_same_are_not_loaded_again(model: Path, model_path: Path) -> None:
    with teaching(model, model_path) as (client, store):
        before = store.load().generation
        teach(client)
        after = store.load(before.models.values()).generation
        assert after.models["model_v1"] is before.models["model_v1"]
        assert after.models["tickets"].sha256 == digest(model) != before.models["tickets"].sha256


# Killed on the way


KILLED = """
import os, sys
from pathlib import Path
from textcls._util import atomic_write
from textcls.server.models import store as stores, teaching
from textcls.server.models.store import GenerationStore
from textcls.server.settings import Settings
os.environ["TEXTCLS_ADMIN_KEY"] = 16 * "x"
store = GenerationStore(Path(sys.argv[2]), [sys.argv[1]], Settings(teaching=True))
served = store.load().generation.get(None)
at = sys.argv[3]
def die(*given):
    if at == "written":
        replace(*given)
    os.kill(os.getpid(), 9)
replace = stores.rewrite
if at == "half":
    os.fsync = die
else:
    stores.rewrite = die
teaching.learn(store, served, teaching.Lesson("tickets", "animals", ["zebra crossing"]))
"""


@pytest.mark.parametrize(("at", "kept"), [("before", False), ("half", False), ("written", True)])
def test_what_a_killed_process_had_on_disk_is_served_and_what_it_had_not_is_forgotten(
    model: Path, prototypes_path: Path, at: str, kept: bool
) -> None:
    with teaching(model) as (client, store):
        command = [sys.executable, "-c", KILLED, str(model), str(store.folder), at]
        assert subprocess.run(command, timeout=PATIENCE).returncode == -9
        until(lambda: not store.begun)
        assert (store.number(), digest(model) == digest(prototypes_path)) == ((2, False) if kept else (1, True))
        until(lambda: ("animals" in listed(client)) == kept)
        assert best(client) == "animals" or not kept
        assert list(model.parent.glob(".textcls-*")) == []
        assert teach(client, "more").status_code == 200


def test_a_start_removes_what_killed_services_have_left_beside_the_models(model: Path, tmp_path: Path) -> None:
    left = model.with_name(".textcls-teaching-0123456789abcdef")
    others = model.with_name(".textcls-0123456789abcdef")
    for each in (left, others):
        each.write_bytes(b"half a mod")
    with left.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        rewriting.sweep(model)
        assert left.exists()  # Somebody is writing it.
    (tmp_path / "run").mkdir()
    (tmp_path / "key").write_text(16 * "x")
    store = GenerationStore(tmp_path / "run", [str(model)], replace(ON, admin_key_file=tmp_path / "key"))
    store.publish()
    assert (left.exists(), others.exists()) == (False, True)
