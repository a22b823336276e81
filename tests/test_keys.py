"""Who asks: names of keys, addresses, the audit trail, and the limits of one key."""

import json
import logging
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.clients import client_of, numbers
from tests.service.processes import PATIENCE, command, until
from tests.test_serving import (
    ADMIN,
    BODY,
    KEYS,
    LONG,
    SlowClassifier,
    bearer,
    message,
    post,
    serving,
    shelf,
    slow,
)
from tests.test_serving import service as service_of
from textcls import Classifier, ConfigError
from textcls.server import audit, auth
from textcls.server.auth import Keys
from textcls.server.key_limits import KeyLimits
from textcls.server.problems import RefusalError
from textcls.server.reload import Shelf
from textcls.server.service import Service
from textcls.server.settings import Settings

__all__ = ["shelf", "slow"]  # fixtures

NAMED = Keys([f"desk:{KEYS[0]}", f"shop: {KEYS[1]}"])


@pytest.fixture
def trail(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "textcls.audit")
    caplog.set_level(logging.INFO, "textcls.requests")
    return caplog


def lines(caplog: pytest.LogCaptureFixture, name: str = "textcls.audit") -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.name == name]


# Names


def test_a_key_is_told_apart_by_its_name_in_logs_and_metrics(
    classifier: Classifier, trail: pytest.LogCaptureFixture
) -> None:
    with serving(service_of(classifier, Settings(log_requests=True), keys=NAMED)) as client:
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
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"desk:{KEYS[0]}")
    shelf.publish()
    assert shelf.load().keys.name(KEYS[0].encode()) == "desk"
    assert KEYS[0] not in "".join(path.read_text(errors="replace") for path in shelf.folder.glob("*.json"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"odd words:{KEYS[0]}", "line 1: what stands before the colon is no name"),
        (f":{KEYS[0]}", "line 1: what stands before the colon is no name"),
        (f"{'n' * 65}:{KEYS[0]}", "line 1: what stands before the colon is no name"),
        ("# one\ndesk:short", "line 2: a key is plain text of at least 16 characters"),
        (f"desk:{KEYS[0]}\nshop:{KEYS[0]}", "line 2: this key has another name elsewhere"),
        ("\n".join(f"{i}-{KEYS[0]}" for i in range(1001)), "There are 1,001 keys, and 1,000 can be told apart"),
        ("#" * 1_000_001, "is it the file of keys?"),
    ],
)
def test_names_and_keys_that_are_none_are_refused_without_being_shown(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        auth.load(Settings(api_keys_file=path))
    assert said in str(caught.value)
    assert KEYS[0] not in str(caught.value)
    assert "odd" not in str(caught.value)


# Addresses


@pytest.mark.parametrize(
    ("trusted", "forwarded", "address"),
    [
        ((), "203.0.113.7", "127.0.0.1"),
        (("10.0.0.0/8",), "203.0.113.7", "127.0.0.1"),
        (("127.0.0.0/8",), "203.0.113.7", "203.0.113.7"),
        (("127.0.0.1",), "1.2.3.4, 203.0.113.7", "203.0.113.7"),
        (("127.0.0.1", "10.0.0.0/8"), "1.2.3.4, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        (("127.0.0.1",), "[2001:db8::1]:443", "2001:db8::1"),
        (("127.0.0.1",), "my card was charged twice", "unknown"),
        (("127.0.0.1",), None, "127.0.0.1"),
    ],
)
def test_the_address_is_that_of_whoever_is_connected_or_of_the_last_that_no_trusted_proxy_has(
    classifier: Classifier,
    trail: pytest.LogCaptureFixture,
    trusted: tuple[str, ...],
    forwarded: str | None,
    address: str,
) -> None:
    settings = Settings(log_requests=True, trusted_proxy=trusted)
    with serving(service_of(classifier, settings, keys=NAMED)) as client:
        headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
        assert post(client, headers={**bearer(KEYS[0]), **headers}).status_code == 200
        assert post(client, headers=headers).status_code == 401
    assert [line["client"] for line in lines(trail, "textcls.requests")] == [address] * 2
    assert [line["client"] for line in lines(trail)] == [address]


def test_addresses_are_left_out_of_every_line_if_told(classifier: Classifier, trail: pytest.LogCaptureFixture) -> None:
    settings = Settings(log_requests=True, log_addresses=False)
    with serving(service_of(classifier, settings, keys=NAMED)) as client:
        post(client, headers=bearer(KEYS[0]))
        post(client)
    found = [*lines(trail, "textcls.requests"), *lines(trail)]
    assert len(found) == 3
    assert not any("client" in line for line in found)


@pytest.mark.parametrize("proxy", ["10.0.0.1/8", "proxy.example", "*", ""])
def test_a_trusted_proxy_that_is_no_address_is_refused(proxy: str) -> None:
    with pytest.raises(ConfigError, match=r"is no address and no network: write 10\.0\.0\.7 or 10\.0\.0\.0/8"):
        Settings(trusted_proxy=(proxy,))


# The audit trail


def test_each_refused_key_leaves_a_line_that_does_not_hold_it(
    classifier: Classifier, trail: pytest.LogCaptureFixture
) -> None:
    with serving(service_of(classifier, keys=NAMED, admin_keys=Keys([ADMIN]))) as client:
        refused = post(client, headers=bearer("key-of-a-stranger-1"))
        post(client)
        client.post("/v1/admin/reload", headers=bearer(KEYS[0]))
        assert client.get("/livez").status_code == 200
    first, second, third = lines(trail)
    assert first["message"] == "A key was refused"
    assert (first["client"], first["path"], first["presented"]) == ("127.0.0.1", "/v1/classify", True)
    assert first["request_id"] == refused.headers["x-request-id"]
    assert second["presented"] is False
    assert (third["path"], third["presented"]) == ("/v1/admin/reload", True)
    assert not any(key in str(lines(trail)) for key in ("stranger", *KEYS))


def test_a_flood_of_refused_keys_is_some_lines_and_one_that_counts_the_others(
    classifier: Classifier, trail: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_SECONDS", 5.0)
    with serving(service_of(classifier, Settings(trusted_proxy=("127.0.0.1",)), keys=NAMED)) as client:
        for i in range(100):
            assert client.get("/v1/models", headers={"x-forwarded-for": f"203.0.113.{i % 80}"}).status_code == 401
        until(lambda: lines(trail)[-1]["message"] == "More keys were refused")
        client.get("/v1/models")
    *each, summary, last = lines(trail)
    assert len(each) == 10
    assert summary["count"] == 90
    assert sum(summary["clients"].values()) == 90
    assert len(summary["clients"]) <= 65
    assert summary["clients"]["203.0.113.20"] == 1
    assert last["message"] == "A key was refused"


def test_each_exchange_leaves_a_line_of_who_asked_and_what_is_served_now(
    shelf: Shelf, tmp_path: Path, trail: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTCLS_ADMIN_KEY", f"anna:{ADMIN}")
    served = Service(shelf.load().generation, Settings(), admin_keys=Keys([f"anna:{ADMIN}"]), shelf=shelf)
    with serving(served) as client:
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).status_code == 200
        (tmp_path / "tickets.onnx").write_bytes(b"no model")
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).status_code == 409
        found = numbers(client)
    done, refused = lines(trail)
    assert (done["by"], done["key"], done["client"], done["result"]) == ("http", "anna", "127.0.0.1", "done")
    assert done["generation"] == 2
    assert done["models"] == {"tickets": shelf.load().generation.get(None).sha256}
    assert (refused["by"], refused["key"], refused["result"]) == ("http", "anna", "refused")
    assert "tickets.onnx" in refused["reason"]
    assert found['textcls_key_requests_total{key="anna",status="409"}'] == 1


@pytest.mark.parametrize("count", ["1", "2"])
def test_the_audit_trail_is_written_whatever_the_log_level(model_path: Path, count: str) -> None:
    env = {"TEXTCLS_API_KEYS": f"desk:{KEYS[0]}"}
    with command(model_path, "--log-level", "error", "--workers", count, env=env) as (process, url):
        assert httpx.get(f"{url}/v1/models", headers=bearer("key-of-a-stranger-1"), timeout=PATIENCE).status_code == 401
        process.send_signal(signal.SIGUSR1)
        with client_of(url, bearer(KEYS[0])) as client:
            until(lambda: numbers(client)["textcls_generation"] == 2)
        process.terminate()
        found = [json.loads(line) for line in process.communicate(timeout=PATIENCE)[1].splitlines()]
    refused, done = [line for line in found if line["logger"] == "textcls.audit"]
    assert (refused["level"], refused["message"], refused["client"]) == ("info", "A key was refused", "127.0.0.1")
    assert (done["by"], done["result"], done["generation"]) == ("signal", "done", 2)


# Limits of a key


def test_a_key_beyond_its_rate_is_told_so_and_others_are_not_held_up(classifier: Classifier) -> None:
    settings = Settings(key_rate=0.01, key_burst=2)
    with serving(service_of(classifier, settings, keys=NAMED, admin_keys=Keys([ADMIN]))) as client:
        assert [post(client, headers=bearer(KEYS[0])).status_code for _ in range(2)] == [200, 200]
        refused = post(client, headers=bearer(KEYS[0]))
        assert message(refused, 429).startswith(
            "The key desk is beyond key_rate, which is 0.01 requests a second to a worker, 2 at once: try again in "
        )
        assert 90 <= int(refused.headers["retry-after"]) <= 100
        assert post(client, headers=bearer(KEYS[1])).status_code == 200
        assert client.get("/readyz").status_code == 200
        found = numbers(client, **bearer(ADMIN))
    assert found["textcls_key_limited_total"] == 1
    assert found["textcls_overloaded_total"] == 0
    assert found['textcls_key_requests_total{key="desk",status="429"}'] == 1


def test_a_key_with_as_many_requests_in_progress_as_it_may_have_waits_for_one_of_them(slow: SlowClassifier) -> None:
    settings = Settings(key_concurrency=1)
    with serving(service_of(slow, settings, keys=NAMED)) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, LONG, bearer(KEYS[0]))
        until(lambda: numbers(client, **bearer(KEYS[1]))["textcls_queue_depth"] == 1)
        refused = post(client, headers=bearer(KEYS[0]))
        assert message(refused, 429) == (
            "The key desk has as many requests in progress as key_concurrency allows in a worker, which is 1: "
            "wait for one of them."
        )
        assert refused.headers["retry-after"] == "1"
        slow.gate.set()
        assert post(client, headers=bearer(KEYS[1])).status_code == 200
        assert first.result().status_code == 200
        assert post(client, headers=bearer(KEYS[0])).status_code == 200


def test_a_request_that_fails_gives_its_place_back(classifier: Classifier) -> None:
    settings = Settings(key_concurrency=1, max_body_bytes=100)
    with serving(service_of(classifier, settings, keys=NAMED)) as client:
        for content in (b"no json", b"x" * 1000, b'{"inputs": "a", "model": "none"}', BODY):
            last = post(client, content, headers=bearer(KEYS[0])).status_code
        with httpx.stream(
            "POST", client.base_url.join("/v1/classify"), content=iter([b"x"] * 3), headers=bearer(KEYS[0])
        ):
            pass
        assert last == 200
        until(lambda: post(client, headers=bearer(KEYS[0])).status_code == 200)


def test_what_is_turned_away_for_lack_of_room_is_counted_apart_from_the_limits_of_keys(slow: SlowClassifier) -> None:
    settings = Settings(max_queue=1, key_concurrency=10)
    with serving(service_of(slow, settings, keys=NAMED)) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, LONG, bearer(KEYS[0]))
        until(lambda: numbers(client, **bearer(KEYS[1]))["textcls_queue_depth"] == 1)
        assert post(client, LONG, bearer(KEYS[0])).status_code == 429
        slow.gate.set()
        assert first.result().status_code == 200
        found = numbers(client, **bearer(KEYS[0]))
    assert (found["textcls_overloaded_total"], found["textcls_key_limited_total"]) == (1, 0)


def test_a_bucket_fills_at_its_rate_up_to_its_burst() -> None:
    now = 0.0
    limits = KeyLimits(2, 3, 0, clock=lambda: now)

    def let_in() -> int:
        for i in range(100):
            try:
                limits.enter("desk")
            except RefusalError:
                return i
            limits.leave("desk")
        return 100

    assert let_in() == 3
    now = 0.4
    assert let_in() == 0
    now = 0.5
    assert let_in() == 1
    now = 1.5
    assert let_in() == 2
    now = 1000.0
    assert let_in() == 3


@pytest.mark.parametrize(("rate", "burst"), [(0.5, 1), (1, 1), (2.5, 3)])
def test_without_a_burst_a_second_of_requests_may_come_at_once(rate: float, burst: int) -> None:
    limits = KeyLimits(rate, 0, 0, clock=lambda: 0.0)
    for _ in range(burst):
        limits.enter("desk")
    with pytest.raises(RefusalError):
        limits.enter("desk")


def test_names_that_have_gone_with_their_keys_do_not_pile_up() -> None:
    limits = KeyLimits(1, 1, 0)
    limits.enter("stays")
    for i in range(5000):
        limits.enter(str(i))
        limits.leave(str(i))
    assert len(limits._states) <= 2000
    limits.leave("stays")


def test_limits_without_keys_are_refused() -> None:
    for settings in (Settings(key_rate=1), Settings(key_concurrency=1)):
        with pytest.raises(ConfigError, match="limit each API key, and there are none"):
            auth.load(settings)
    with pytest.raises(ConfigError, match="set --key-rate as well"):
        Settings(key_burst=3)


def test_no_key_is_on_a_command_line(model_path: Path) -> None:
    env = {"TEXTCLS_API_KEYS": f"desk:{KEYS[0]}"}
    with command(model_path, env=env):
        tree = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert KEYS[0] not in tree
