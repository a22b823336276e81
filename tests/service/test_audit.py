"""What is written down of who asks: addresses, and the audit trail."""

import json
import signal
from pathlib import Path

import httpx
import pytest

from tests.service.clients import ADMIN, KEYS, bearer, client_of, numbers, post
from tests.service.processes import PATIENCE, command, until
from tests.service.server import NAMED, lines, service, serving
from textcls import Classifier, ConfigError
from textcls.server.admission.auth import Keys
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import audit
from textcls.server.service import Service
from textcls.server.settings import Settings

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
    with serving(service(classifier, settings, keys=NAMED)) as client:
        headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
        assert post(client, headers={**bearer(KEYS[0]), **headers}).status_code == 200
        assert post(client, headers=headers).status_code == 401
    assert [line["client"] for line in lines(trail, "textcls.requests")] == [address] * 2
    assert [line["client"] for line in lines(trail)] == [address]


def test_addresses_are_left_out_of_every_line_if_told(classifier: Classifier, trail: pytest.LogCaptureFixture) -> None:
    settings = Settings(log_requests=True, log_addresses=False)
    with serving(service(classifier, settings, keys=NAMED)) as client:
        post(client, headers=bearer(KEYS[0]))
        post(client)
    found = [*lines(trail, "textcls.requests"), *lines(trail)]
    assert len(found) == 3
    assert not any("client" in line for line in found)


@pytest.mark.parametrize("proxy", ["10.0.0.1/8", "proxy.example", "*"])
def test_a_trusted_proxy_that_is_no_address_is_refused(proxy: str) -> None:
    with pytest.raises(ConfigError, match=r"is not an address or network: write 10\.0\.0\.7 or 10\.0\.0\.0/8"):
        Settings(trusted_proxy=(proxy,))


# The audit trail


def test_each_refused_key_leaves_a_line_that_does_not_hold_it(
    classifier: Classifier, trail: pytest.LogCaptureFixture
) -> None:
    with serving(service(classifier, keys=NAMED, admin_keys=Keys([ADMIN]))) as client:
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
    with serving(service(classifier, Settings(trusted_proxy=("127.0.0.1",)), keys=NAMED)) as client:
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
    store: GenerationStore, tmp_path: Path, trail: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEXTCLS_ADMIN_KEY", f"anna:{ADMIN}")
    served = Service(store.load().generation, Settings(), admin_keys=Keys([f"anna:{ADMIN}"]), store=store)
    with serving(served) as client:
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).status_code == 200
        (tmp_path / "tickets.onnx").write_bytes(b"no model")
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).status_code == 409
        found = numbers(client)
    done, refused = lines(trail)
    assert (done["by"], done["key"], done["client"], done["result"]) == ("http", "anna", "127.0.0.1", "done")
    assert done["generation"] == 2
    assert done["models"] == {"tickets": store.load().generation.get(None).sha256}
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
