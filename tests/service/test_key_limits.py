"""The limits of one key: requests a second, and requests at a time."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.service.clients import ADMIN, BODY, KEYS, LONG, bearer, message, numbers, post
from tests.service.processes import until
from tests.service.server import NAMED, SlowClassifier, service, serving
from textcls import Classifier, ConfigError
from textcls.server.admission import auth
from textcls.server.admission.auth import Keys
from textcls.server.admission.key_limits import KeyLimits
from textcls.server.problems import RefusalError
from textcls.server.settings import Settings


def test_a_key_beyond_its_rate_is_told_so_and_others_are_not_held_up(classifier: Classifier) -> None:
    settings = Settings(key_rate=0.01, key_burst=2)
    with serving(service(classifier, settings, keys=NAMED, admin_keys=Keys([ADMIN]))) as client:
        assert [post(client, headers=bearer(KEYS[0])).status_code for _ in range(2)] == [200, 200]
        refused = post(client, headers=bearer(KEYS[0]))
        assert message(refused, 429).startswith(
            "The key desk exceeds key_rate, which is 0.01 a second to a worker, 2 at once: try again in "
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
    with serving(service(slow, settings, keys=NAMED)) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, LONG, bearer(KEYS[0]))
        until(lambda: numbers(client, **bearer(KEYS[1]))["textcls_queue_depth"] == 1)
        refused = post(client, headers=bearer(KEYS[0]))
        assert message(refused, 429) == (
            "The key desk already has as many requests in progress as key_concurrency allows per worker, 1: wait for "
            "one to finish."
        )
        assert refused.headers["retry-after"] == "1"
        slow.gate.set()
        assert post(client, headers=bearer(KEYS[1])).status_code == 200
        assert first.result().status_code == 200
        assert post(client, headers=bearer(KEYS[0])).status_code == 200


def test_a_request_that_fails_gives_its_place_back(classifier: Classifier) -> None:
    settings = Settings(key_concurrency=1, max_body_bytes=100)
    with serving(service(classifier, settings, keys=NAMED)) as client:
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
    with serving(service(slow, settings, keys=NAMED)) as client, ThreadPoolExecutor() as pool:
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
    with pytest.raises(RefusalError, match="The key desk exceeds key_rate"):
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
        with pytest.raises(ConfigError, match="limit each API key, but there are no keys"):
            auth.load(settings)
    with pytest.raises(ConfigError, match="set --key-rate as well"):
        Settings(key_burst=3)
