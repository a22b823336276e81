"""A registry that is served: the promoted version answers, and a reload follows what is promoted."""

import signal
from pathlib import Path

import pytest

from tests.command_line import succeed
from tests.service.clients import ADMIN, Load, bearer, message, post
from tests.service.processes import ended, until
from tests.service.published import SHIFTED, publish, versions
from tests.service.reloading import LABELS, REFUSED, served
from textcls import ArtifactError, ConfigError
from textcls.server.models import registry as models
from textcls.server.models.reload import GenerationStore
from textcls.server.settings import Settings


@pytest.fixture
def registry(model_path: Path, tmp_path: Path) -> Path:
    """Two versions, the first promoted; the second calls each label by the name of another."""
    path = tmp_path / "registry"
    publish(model_path, path, "--promote", example="first")
    publish(model_path, path, labels=SHIFTED)
    return path


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_reload_follows_what_is_promoted_forth_and_back(registry: Path, count: str) -> None:
    with served(registry, "--workers", count) as running:
        (card,) = running.client.get("/v1/models").json()["models"]
        digest = card["sha256"]
        assert (card["name"], card["version"]) == ("tickets", "1")
        assert f'textcls_model_info{{model="tickets",sha256="{digest}",version="1"}}' in running.numbers()
        assert post(running.client).headers["x-model"] == f'tickets; version="1"; sha256="{digest}"'
        assert running.label() == "billing"
        versions(registry, "--promote", "2")
        assert running.label() == "billing"
        running.process.send_signal(signal.SIGUSR1)
        until(lambda: {running.label() for _ in range(12)} == {"cancellation"})
        assert running.client.get("/v1/models").json()["models"][0]["version"] == "2"
        versions(registry, "--rollback")
        assert running.reload().json()["generation"] == 3
        assert {running.label() for _ in range(12)} == {"billing"}


def test_a_service_that_watches_follows_by_itself_and_loses_no_request(registry: Path, model_path: Path) -> None:
    with served(f"urgency={model_path}", f"mails={registry}", "--watch-seconds", "0.1") as running:
        url = str(running.client.base_url)
        with Load(url) as load:
            for version, options in (("2", ["--promote", "2"]), ("1", ["--rollback"])):
                load.more(20)
                versions(registry, *options)

                def now() -> str:
                    cards = running.client.get("/v1/models").json()["models"]
                    assert [card["name"] for card in cards] == ["urgency", "mails"]
                    return str(cards[1]["version"])

                until(lambda now=now, version=version: now() == version)  # type: ignore[misc]
            load.more(20)
            assert (load.failures, set(load.statuses)) == ([], {200})


def test_a_damaged_version_is_not_served_and_the_old_one_goes_on(registry: Path) -> None:
    damaged = registry / "2" / "model.onnx"
    with served(registry) as running:
        versions(registry, "--promote", "2")
        damage(damaged)
        said = message(running.reload(), 409)
        assert f"{damaged} has the SHA-256 " in said
        assert "it is damaged or was changed; promote another version" in said
        assert running.label() == "billing"
        assert running.numbers()[REFUSED] == 1
    code, said = ended(registry)
    assert code == 4
    assert "it is damaged or was changed" in said


def test_what_is_no_registry_that_can_be_served_is_refused(registry: Path, model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"name the file of one, tickets@1=.+/registry/1/model\.onnx\."):
        models.resolve([f"tickets@1={registry}"])
    publish(model_path, tmp_path / "new")
    with pytest.raises(ArtifactError, match=r"No version of .+/new is promoted: textcls versions .+/new --promote 1"):
        models.resolve([str(tmp_path / "new")])
    (registry / "registry.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"registry\.json is damaged \(registry_format is not a number"):
        models.resolve([str(registry)])


def test_labels_are_not_taught_to_a_version_which_never_changes(prototypes_path: Path, tmp_path: Path) -> None:
    registry = tmp_path / "registry"
    succeed("publish", prototypes_path, registry, "--name", "topics", "--promote")
    before = (registry / "1" / "model.onnx").read_bytes()
    with served(registry, "--teaching") as running:
        assert "teachable" not in running.client.get("/v1/models").json()["models"][0]
        answer = running.client.post(
            "/v1/models/topics/labels", headers=bearer(ADMIN), json={"label": "refunds", "examples": ["money back"]}
        )
        assert "is a version of a registry, which never changes: teach a copy" in message(answer, 409)
    assert (registry / "1" / "model.onnx").read_bytes() == before


# The shadow


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_shadow_answers_silently_and_what_all_workers_count_adds_up(registry: Path, count: str) -> None:
    versions(registry, "--shadow", "2")
    with served(registry, "--workers", count) as running:
        (card,) = running.client.get("/v1/models").json()["models"]
        assert (card["version"], card["shadow"]["version"]) == ("1", "2")
        assert len(card["shadow"]["sha256"]) == 64
        assert running.numbers()['textcls_shadow_texts_total{model="tickets",version="2"}'] == 0
        assert {running.label() for _ in range(20)} == {"billing"}
        of = 'model="tickets",version="2"'
        until(lambda: running.numbers()[f"textcls_shadow_texts_total{{{of}}}"] == 20)
        found = running.numbers()
        pair = 'label="billing",model="tickets",shadow_label="cancellation",version="2"'
        assert found[f"textcls_shadow_disagreements_total{{{pair}}}"] == 20
        assert found[f"textcls_shadow_difference_count{{{of}}}"] == 20
        # The label that the model answers has in the shadow the score of another.
        assert found[f"textcls_shadow_difference_sum{{{of}}}"] > 1
        assert found[f"textcls_shadow_dropped_total{{{of}}}"] == found[f"textcls_shadow_errors_total{{{of}}}"] == 0
        # What is answered is counted once, as the model's.
        assert found['textcls_predictions_total{label="billing",model="tickets"}'] == 20
        assert 'textcls_predictions_total{label="cancellation",model="tickets"}' not in found
        code, said = running.stop()
    assert code == 0
    assert "charged" not in said
    assert "Traceback" not in said


def test_a_shadow_comes_and_goes_with_a_reload_and_is_promoted_without_being_loaded_again(
    registry: Path, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    store = GenerationStore(tmp_path / "run", [str(registry)], Settings())
    store.publish()
    first = store.load().generation.get(None)
    assert (first.version, first.shadow) == ("1", None)
    assert not store.has_shadows()
    versions(registry, "--shadow", "2")
    store.publish()
    second = store.load([first]).generation.get(None)
    assert second.classifier is first.classifier
    assert second.shadow is not None
    assert second.shadow.version == "2"
    assert store.has_shadows()
    size = (registry / "1" / "model.onnx").stat().st_size
    assert store.model_bytes() > 1.9 * size
    versions(registry, "--promote", "2")
    store.publish()
    third = store.load([second]).generation.get(None)
    assert (third.version, third.shadow) == ("2", None)
    assert third.classifier is second.shadow.classifier
    # The copy of the first is kept for a generation, and gone with the next.
    assert len(list((tmp_path / "run").glob("*.onnx"))) == 2
    store.publish()
    assert len(list((tmp_path / "run").glob("*.onnx"))) == 1


def test_files_of_a_registry_are_looked_at_for_changes_of_the_shadow_too(registry: Path, tmp_path: Path) -> None:
    store = GenerationStore(tmp_path / "run", [str(registry)], Settings())
    before = store.files()
    assert store.files() == before
    versions(registry, "--shadow", "2")
    assert store.files() != before
    versions(registry, "--no-shadow")
    assert store.files() == before


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_shadow_that_cannot_be_used_is_told_and_the_promoted_version_answers(registry: Path, count: str) -> None:
    versions(registry, "--shadow", "2")
    damage(registry / "2" / "model.onnx")
    with served(registry, "--workers", count) as running:
        assert running.label() == "billing"
        (card,) = running.client.get("/v1/models").json()["models"]
        assert card["shadow"]["version"] == "2"
        assert "it is damaged or was changed" in card["shadow"]["problem"]
        assert running.reload().json()["generation"] == 2
        code, said = running.stop()
    assert code == 0
    assert said.count("The shadow of tickets, version 2, is not asked: ") == 2


def test_a_shadow_with_other_labels_is_told(registry: Path, model_path: Path) -> None:
    publish(model_path, registry, labels=["accounts", *LABELS[1:]])
    versions(registry, "--shadow", "3")
    with served(registry, "--same-labels") as running:
        assert running.label() == "billing"
        said = running.stop()[1]
    assert "The shadow of tickets, version 3, knows other labels: 1 added 'accounts', 1 removed 'account'" in said


def test_requests_in_other_formats_are_shadowed_as_well(registry: Path) -> None:
    versions(registry, "--shadow", "2")
    with served(registry) as running:
        asked = {"inputs": [["my card was charged twice"], ["where is it"]]}
        assert running.client.post("/predict", json=asked).status_code == 200
        until(lambda: running.numbers()['textcls_shadow_texts_total{model="tickets",version="2"}'] == 2)


def test_a_model_that_becomes_a_shadow_has_none_itself(registry: Path, model_path: Path, tmp_path: Path) -> None:
    publish(model_path, registry, labels=SHIFTED, example="third")
    versions(registry, "--shadow", "2")
    (tmp_path / "run").mkdir()
    store = GenerationStore(tmp_path / "run", [str(registry)], Settings())
    store.publish()
    before = list(store.load().generation.models.values())
    assert [one.shadow is not None and one.shadow.version for one in before] == ["2"]
    versions(registry, "--promote", "3")
    versions(registry, "--shadow", "1")
    store.publish()
    (one,) = store.load(before).generation.models.values()
    assert (one.version, one.shadow and one.shadow.version) == ("3", "1")
    assert one.shadow is not None
    assert one.shadow.shadow is None
