"""Who may ask: keys, their names and files, and that nobody gets to see them."""

import os
import re
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.service.clients import ADMIN, BODY, JSON, KEYS, bearer, client_of, message, numbers, post
from tests.service.processes import PATIENCE, command, until, workers
from tests.service.server import NAMED, lines, service, serving
from tests.service.sockets import connect
from textcls import Classifier, ConfigError
from textcls.server.admission import auth
from textcls.server.admission.auth import Keys
from textcls.server.models.store import GenerationStore
from textcls.server.settings import Settings, check_exposure


def test_with_keys_every_one_of_them_opens_and_nothing_else_does(classifier: Classifier) -> None:
    with serving(service(classifier, keys=Keys(KEYS))) as client:
        assert [post(client, headers=bearer(key)).status_code for key in KEYS] == [200, 200]
        assert post(client, headers={"x-api-key": KEYS[0]}).status_code == 200
        refused = post(client)
        assert message(refused, 401) == "A key is needed: send one as 'authorization: Bearer KEY'."
        assert refused.headers["www-authenticate"] == "Bearer"
        assert message(post(client, headers=bearer(KEYS[0][:-1])), 401).startswith("This key is not valid")
        assert [client.get(path).status_code for path in ("/v1/models", "/metrics", "/openapi.json")] == [401] * 3
        assert [client.get(path).status_code for path in ("/livez", "/readyz")] == [200] * 2


def test_a_request_without_a_key_is_refused_before_its_body_is_read(classifier: Classifier) -> None:
    with serving(service(classifier, keys=Keys(KEYS))) as client, connect(client) as connection:
        connection.sendall(b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")


def test_without_keys_it_listens_to_this_machine_alone_unless_told_otherwise() -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        check_exposure(Settings(host=host), has_keys=False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ConfigError, match="--no-auth"):
            check_exposure(Settings(host=host), has_keys=False)
        check_exposure(Settings(host=host), has_keys=True)
        check_exposure(Settings(host=host, no_auth=True), has_keys=False)


def test_no_key_is_in_a_log_or_on_a_command_line(model_path: Path) -> None:
    env = {"TEXTCLS_API_KEYS": KEYS[0], "TEXTCLS_ADMIN_KEY": ADMIN}
    with command(model_path, "--workers", "2", "--log-level", "info", "--log-requests", env=env) as (process, url):
        with client_of(url) as client:
            assert post(client, headers=bearer(KEYS[0])).status_code == 200
            assert post(client, headers=bearer(ADMIN)).status_code == 401
        tree = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        process.terminate()
        said = "".join(process.communicate(timeout=PATIENCE))
    assert '"message": "request"' in said
    assert not any(key in said + tree for key in (KEYS[0], ADMIN))


def test_no_key_is_on_a_command_line(model_path: Path) -> None:
    env = {"TEXTCLS_API_KEYS": f"desk:{KEYS[0]}"}
    with command(model_path, env=env):
        tree = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert KEYS[0] not in tree


# Files and variables


def test_keys_come_from_a_file_and_from_the_environment_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# the first\n{KEYS[0]}\n\n  # an indented comment\n")
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"{KEYS[1]},{ADMIN}")
    keys, admin = auth.load(Settings(api_keys_file=path))
    assert all(key.encode() in keys for key in (*KEYS, ADMIN))
    assert b"" not in keys
    assert b"# an indented comment" not in keys
    assert not admin


@pytest.mark.parametrize(
    ("content", "said"), [("short\n", "at least 16"), ("\n", "contains no key"), (None, "There is no file of keys")]
)
def test_keys_that_are_none_are_refused_without_being_shown(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said) as caught:
        auth.load(Settings(api_keys_file=path))
    assert "short\n" not in str(caught.value)


def test_a_broken_file_of_keys_is_refused_at_a_signal_and_stops_neither_workers_nor_those_that_replace_them(
    model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "keys"
    path.write_text(KEYS[0])
    with (
        command(model_path, "--workers", "2", "--api-keys-file", path) as (process, url),
        client_of(url, bearer(KEYS[0])) as client,
    ):
        path.write_text("half")
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client)['textcls_reloads_total{result="refused"}'] == 1)
        before = workers(process)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(workers(process)) == 2 and before[0] not in workers(process))
        # The connection of before may be that of the worker that was killed.
        with client_of(url, bearer(KEYS[0])) as later:
            found = until(lambda: (n := numbers(later))["textcls_workers"] == 2 and n)
        assert found['textcls_reloads_total{result="done"}'] == 0
        assert found["textcls_generation"] == 1
        # By connections of their own, so that both workers are asked.
        asked = [httpx.post(f"{url}/v1/classify", content=BODY, headers={**JSON, **bearer(KEYS[0])}) for _ in range(20)]
        assert {answer.status_code for answer in asked} == {200}
        assert httpx.post(f"{url}/v1/classify", content=BODY, headers={**JSON, **bearer("half")}).status_code == 401


def test_new_keys_are_taken_up_by_all_workers_at_a_signal(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(KEYS[0])
    with (
        command(model_path, "--workers", "2", "--api-keys-file", path, "--public-metrics") as (process, url),
        client_of(url) as client,
    ):
        path.write_text(KEYS[1])
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client)["textcls_generation"] == 2)
        assert [post(client, headers=bearer(key)).status_code for key in KEYS] == [401, 200]


# Names


def test_a_key_is_told_apart_by_its_name_in_logs_and_metrics(
    classifier: Classifier, trail: pytest.LogCaptureFixture
) -> None:
    with serving(service(classifier, Settings(log_requests=True), keys=NAMED)) as client:
        for key in KEYS:
            assert post(client, headers=bearer(key)).status_code == 200
        assert post(client, b"no json", headers=bearer(KEYS[1])).status_code == 422
        found = numbers(client, **bearer(KEYS[0]))
    assert [line["key"] for line in lines(trail, "textcls.requests")] == ["desk", "shop", "shop", "desk"]
    assert found['textcls_key_requests_total{key="desk",status="200"}'] == 1
    assert found['textcls_key_requests_total{key="shop",status="200"}'] == 1
    assert found['textcls_key_requests_total{key="shop",status="422"}'] == 1


def test_a_key_without_a_name_is_called_by_its_hash_wherever_it_stands() -> None:
    (name,) = Keys([KEYS[0]]).names
    assert re.fullmatch(r"key-[0-9a-f]{8}", name)
    assert Keys([KEYS[1], KEYS[0]]).name(KEYS[0].encode()) == name
    assert Keys([KEYS[1]]).names != {name}


def test_names_stand_before_a_colon_in_file_and_environment_and_several_keys_may_share_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(f"desk: {KEYS[0]}\n desk:{KEYS[1]}\n# shop:{ADMIN}\nwith=sign=of-base64==\n")
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"shop:{ADMIN}, desk:{KEYS[0]}")
    keys, _ = auth.load(Settings(api_keys_file=path))
    assert [keys.name(key.encode()) for key in (*KEYS, ADMIN)] == ["desk", "desk", "shop"]
    assert b"with=sign=of-base64==" in keys
    assert keys.name(f"desk:{KEYS[0]}".encode()) is None
    assert keys.name(b"") is None


def test_the_names_are_those_of_the_workers_as_well(
    store: GenerationStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"desk:{KEYS[0]}")
    store.publish()
    assert store.load().keys.name(KEYS[0].encode()) == "desk"
    assert KEYS[0] not in "".join(path.read_text(errors="replace") for path in store.folder.glob("*.json"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"odd words:{KEYS[0]}", "line 1: the part before the colon is not a valid key name"),
        (f":{KEYS[0]}", "line 1: the part before the colon is not a valid key name"),
        (f"{'n' * 65}:{KEYS[0]}", "line 1: the part before the colon is not a valid key name"),
        ("# one\ndesk:short", "line 2: a key is plain text of at least 16 characters"),
        (f"desk:{KEYS[0]}\nshop:{KEYS[0]}", "line 2: this key has another name elsewhere"),
        ("\n".join(f"{i}-{KEYS[0]}" for i in range(1001)), "There are 1,001 keys, and 1,000 can be told apart"),
        ("#" * 1_000_001, "is it the file of keys?"),
    ],
)
def test_names_and_keys_that_are_none_are_refused_without_being_shown(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        auth.load(Settings(api_keys_file=path))
    assert KEYS[0] not in str(caught.value)
    assert "odd" not in str(caught.value)


def test_a_key_of_callers_is_not_that_of_the_administrator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"caller:{16 * 'x'}")
    monkeypatch.setenv("TEXTCLS_ADMIN_KEY", 16 * "x")
    with pytest.raises(ConfigError, match="An API key is the admin key as well"):
        auth.load(Settings())
    monkeypatch.setenv("TEXTCLS_ADMIN_KEY", 16 * "y")
    assert auth.load(Settings())[0].names == {"caller"}


def test_a_file_of_keys_may_begin_as_windows_writes_it(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("\ufeffcaller:" + 16 * "x" + "\r\n", encoding="utf-8")
    assert auth.load(Settings(api_keys_file=tmp_path / "keys"))[0].names == {"caller"}
