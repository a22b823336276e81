"""A registry that is served: the promoted version answers, and a reload follows what is promoted."""

import signal
from pathlib import Path

import pytest

from tests.service.clients import Load, message, post
from tests.service.processes import ended, until
from tests.service.published import SHIFTED, publish, versions
from tests.service.reloading import REFUSED, served
from textcls import ArtifactError, ConfigError
from textcls.server.models import registry as models


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
        # The other worker may be slower, and not have been asked.
        until(lambda: running.client.get("/v1/models").json()["models"][0]["version"] == "2")
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
