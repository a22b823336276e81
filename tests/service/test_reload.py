"""Exchanging the models of a running service: whatever the files do, the old models go on answering."""

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.service.clients import ADMIN, KEYS, Load, bearer, client_of, message, numbers, post
from tests.service.processes import MAIN, command, until
from tests.service.reloading import LABELS, REFUSED, change_metadata, served
from tests.service.server import service, serving
from textcls import ArtifactError, Classifier, SurroundingsError
from textcls.server.admission.auth import Keys
from textcls.server.models import loading
from textcls.server.models.store import GenerationStore
from textcls.server.service import Service
from textcls.server.settings import Settings


def put_too_few_labels(source: Path, target: Path) -> None:
    change_metadata(source, target, labels=LABELS[:6], bias=[0.0] * 6)


def put_no_threshold(source: Path, target: Path) -> None:
    change_metadata(source, target, threshold=float("nan"))


def put_odd_label(source: Path, target: Path) -> None:
    change_metadata(source, target, labels=[*LABELS[:6], "\ud83d"])


def put_pipe(source: Path, target: Path) -> None:
    target.unlink()
    os.mkfifo(target)


def put_device(source: Path, target: Path) -> None:
    target.unlink()
    target.symlink_to("/dev/zero")


def put_nothing(source: Path, target: Path) -> None:
    target.unlink()


def put_large(source: Path, target: Path) -> None:
    with target.open("wb") as file:
        file.truncate(3 * 2**30)


Put = Callable[[Path, Path], None]
BAD: list[Put] = [put_too_few_labels, put_no_threshold, put_odd_label, put_pipe, put_device, put_nothing, put_large]


@pytest.fixture
def model(model_path: Path, tmp_path: Path) -> Path:
    """A copy of the small model that may be exchanged."""
    return Path(shutil.copy(model_path, tmp_path / "tickets.onnx"))


# Several workers read what one process has found to be good, so that they are not asked about each kind of badness.
@pytest.mark.parametrize(("count", "bad"), [("1", BAD), ("2", [put_device, put_nothing])])
def test_whatever_the_new_file_is_the_old_model_goes_on_answering(
    model: Path, model_path: Path, count: str, bad: Sequence[Put]
) -> None:
    with served(model, "--workers", count) as running:
        for number, put in enumerate(bad, 1):
            put(model_path, model)
            answer = running.reload()
            assert answer.status_code == 409, (put.__name__, answer.text)
            assert str(model) in answer.json()["error"]["message"]
            running.process.send_signal(signal.SIGUSR1)
            until(partial(running.refused, 2 * number))
            assert running.label() == "billing"
            model.unlink(missing_ok=True)
            shutil.copy(model_path, model)
        assert running.numbers()["textcls_generation"] == 1
        assert running.reload().json()["generation"] == 2
        status, said = running.stop()
    assert status == 0
    assert "Traceback" not in said


KILLER = f"""
import os, sys
from textcls.server.models import loading
# What a damaged graph may do to whoever runs it.
loading._CODE = "import os; os.kill(os.getpid(), 11)"
{MAIN}
"""


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_file_that_kills_whoever_tests_it_kills_nobody_who_answers(model: Path, count: str) -> None:
    with served(model, "--workers", count, code=KILLER) as running:
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: running.numbers()[REFUSED] == 1)
        assert running.label() == "billing"
        status, said = running.stop()
    assert status == 0
    assert "ended (SIGSEGV) before it was done" in said


@pytest.mark.parametrize("content", [b"", b"no model", None], ids=["empty", "garbage", "truncated"])
def test_a_bad_file_leaves_the_old_model_answering_and_says_why(
    store: GenerationStore, tmp_path: Path, model_path: Path, content: bytes | None
) -> None:
    served = Service(store.load().generation, Settings(), admin_keys=Keys([ADMIN]), store=store)
    with serving(served) as client:
        before = post(client)
        (tmp_path / "tickets.onnx").write_bytes(model_path.read_bytes()[:-5000] if content is None else content)
        said = message(client.post("/v1/admin/reload", headers=bearer(ADMIN)), 409)
        assert said.startswith("The old models go on answering: ")
        assert "tickets.onnx" in said
        after = post(client)
        assert (after.json(), after.headers["x-model"]) == (before.json(), before.headers["x-model"])
        # A worker that starts now serves what the others serve, not the bad file.
        assert store.load().generation.get(None).sha256 in after.headers["x-model"]
        assert numbers(client)['textcls_reloads_total{result="refused"}'] == 1


# Who asks for it


def test_a_reload_needs_the_admin_key_and_says_how_many_workers_took_part(store: GenerationStore) -> None:
    served = Service(store.load().generation, Settings(), keys=Keys(KEYS), admin_keys=Keys([ADMIN]), store=store)
    with serving(served) as client:
        assert client.post("/v1/admin/reload").status_code == 401
        assert client.post("/v1/admin/reload", headers=bearer(KEYS[0])).status_code == 401
        assert post(client, headers=bearer(ADMIN)).status_code == 401
        wrong = client.put("/v1/admin/reload", headers=bearer(ADMIN))
        assert message(wrong, 405) == "This path answers POST, not PUT."
        assert wrong.headers["allow"] == "POST"
        assert "no such path" in message(client.put("/v1/admin/other", headers=bearer(ADMIN)), 404)
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).json() == {
            "generation": 2,
            "workers": 1,
            "changed_labels": [],
            "changed_columns": [],
            "changed_tasks": [],
            "changed_models": [],
        }
        assert client.get("/v1/models", headers=bearer(KEYS[0])).json()["generation"] == 2


def test_without_an_admin_key_there_is_no_administration(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        assert "--admin-key-file" in message(client.post("/v1/admin/reload"), 403)


def test_a_signal_exchanges_the_models_of_all_workers(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "tickets.onnx"
    shutil.copy(model_path, path)
    with (
        command(tmp_path, "--workers", "2") as (process, url),
        Load(url) as load,
        client_of(url) as client,
    ):
        load.more(20)
        shutil.copy(model_path, tmp_path / "second.onnx")
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client)["textcls_generation"] == 2)
        assert len(client.get("/v1/models").json()["models"]) == 2
        path.write_bytes(b"no model")
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client).get('textcls_reloads_total{result="refused"}'))
        load.more(20)
        assert set(load.statuses) == {200}
        assert load.failures == []


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGHUP])
def test_one_worker_reloads_at_a_signal_too(model_path: Path, number: int) -> None:
    with command(model_path) as (process, url), client_of(url) as client:
        process.send_signal(number)
        assert until(lambda: numbers(client)["textcls_generation"] == 2)
        assert numbers(client)['textcls_reloads_total{result="done"}'] == 1


def test_an_order_comes_to_the_process_as_it_was_given(tmp_path: Path) -> None:
    settings = Settings(api_keys_file=tmp_path / "keys", cors_origin=("https://a", "https://b"), load_seconds=7)
    order = loading.LoadRequest(("a=b.onnx", "c\udcff.onnx"), settings, tmp_path)
    assert loading.LoadRequest.from_json(order.to_json()) == order


def test_an_exchange_waits_for_another_and_not_for_ever(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    store = GenerationStore(folder, [str(model)], Settings(load_seconds=0.2))
    with store._alone(0.2), pytest.raises(SurroundingsError, match="Another exchange of the models is still under way"):
        store.publish()


# Labels that change


def test_a_reload_that_changes_the_labels_says_so_in_its_answer_and_in_the_log(model: Path, model_path: Path) -> None:
    with served(model) as running:
        assert running.reload().json()["changed_labels"] == []
        change_metadata(model_path, model, labels=["accounts", *LABELS[1:]])
        expected = [{"model": "tickets", "added": ["accounts"], "removed": ["account"]}]
        assert running.reload().json()["changed_labels"] == expected
        said = running.stop()[1]
    assert said.count("The labels are others than before, of tickets: 1 added 'accounts', 1 removed 'account'") == 1


def test_labels_in_another_order_are_the_same_labels(model: Path, model_path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    store = GenerationStore(folder, [str(model)], Settings(same_labels=True))
    store.publish()
    change_metadata(model_path, model, labels=LABELS[::-1])
    assert store.publish() == (2, ((), (), (), ()))


def _free_and_strict(folder: Path, models: Path) -> tuple[GenerationStore, GenerationStore]:
    """Return two stores over one folder of generations: one that takes any change, and one that refuses others."""
    folder.mkdir()
    store, strict = (GenerationStore(folder, [str(models)], Settings(same_labels=same)) for same in (False, True))
    return store, strict


def test_a_reload_to_a_model_that_reads_other_columns_says_so_or_is_refused(
    model: Path, model_path: Path, tmp_path: Path
) -> None:
    store, strict = _free_and_strict(tmp_path / "run", model)
    store.publish()
    change_metadata(model_path, model, text_columns=["body"])
    assert store.publish().changes.columns == ()  # Requests send texts alone.
    change_metadata(model_path, model, text_columns=["title", "body"])
    said = r"The columns would change \(tickets: 2 added 'title' 'body', 0 removed\), and same_labels is set"
    with pytest.raises(ArtifactError, match=said):
        strict.publish()
    assert store.publish().changes == ((), (("tickets", ("title", "body"), ()),), (), ())


def test_a_reload_that_lacks_a_model_or_has_another_default_says_so_or_is_refused(
    model_path: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    for name in ("b", "c"):
        shutil.copy(model_path, models / f"{name}.onnx")
    store, strict = _free_and_strict(tmp_path / "run", models)
    store.publish()
    shutil.copy(model_path, models / "a.onnx")
    with pytest.raises(ArtifactError, match=r"The models would change \(the default: 1 added 'a', 1 removed 'b'\)"):
        strict.publish()
    assert store.publish().changes.models == (("the default", ("a",), ("b",)),)
    (models / "c.onnx").unlink()
    with pytest.raises(ArtifactError, match=r"The models would change \(c: 0 added, 1 removed 'c'\)"):
        strict.publish()
    assert store.publish().changes.models == (("c", (), ("c",)),)


def test_a_reload_to_a_model_that_gives_several_labels_says_so_or_is_refused(
    model: Path, several_labels_path: Path, tmp_path: Path
) -> None:
    store, strict = _free_and_strict(tmp_path / "run", model)
    store.publish()
    change_metadata(several_labels_path, model, labels=LABELS)
    with pytest.raises(ArtifactError, match=r"The tasks would change \(tickets: 1 added 'multi-label', 1 removed"):
        strict.publish()
    assert store.publish().changes.tasks == (("tickets", ("multi-label",), ("single-label",)),)


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_that_changes_the_labels_is_refused_if_they_must_be_the_same(
    model: Path, model_path: Path, count: str
) -> None:
    with served(model, "--workers", count, "--same-labels") as running:
        change_metadata(model_path, model, labels=["accounts", *LABELS[1:]])
        answer = running.reload()
        assert answer.status_code == 409
        said = "The labels would change (tickets: 1 added 'accounts', 1 removed 'account'), and same_labels is set"
        assert said in answer.json()["error"]["message"]
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: running.numbers()[REFUSED] == 2)
        (card,) = running.client.get("/v1/models").json()["models"]
        assert card["labels"] == LABELS
