"""A server without keys answers to its own names alone, and no page of another origin can use it."""

import httpx
import pytest

from tests.service.clients import BODY, post
from tests.service.processes import PATIENCE
from tests.service.server import listening, service, serving
from textcls import Classifier, ConfigError
from textcls.server.admission.auth import Keys
from textcls.server.admission.origins import is_allowed, is_foreign
from textcls.server.settings import Settings

NAMES = frozenset({b"localhost", b"127.0.0.1", b"[::1]"})
KEY = "key-of-a-client-that-may"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:80", "[::1]", "[::1]:8000"])
def test_a_host_is_known_by_its_name_whatever_its_port(host: str) -> None:
    assert is_allowed(host.encode(), NAMES)


@pytest.mark.parametrize("host", ["", "evil.example", "localhost.evil.example:8000", "127.0.0.1:80:80", "::1", ":80"])
def test_a_host_of_another_name_is_not(host: str) -> None:
    assert not is_allowed(host.encode(), NAMES)


@pytest.mark.parametrize(
    ("origin", "site", "foreign"),
    [
        ("", "", False),  # no browser
        ("http://localhost:8000", "same-origin", False),
        ("", "none", False),  # typed by a person
        ("http://localhost:8000", "", False),
        ("https://page.example", "cross-site", False),  # allowed by name
        ("https://evil.example", "cross-site", True),
        ("http://localhost:9000", "same-site", True),
        ("http://localhost:9000", "", True),
        ("null", "", True),
        ("", "cross-site", True),
    ],
)
def test_a_page_of_another_origin_is_known_by_what_the_browser_says(origin: str, site: str, foreign: bool) -> None:
    found = is_foreign(b"localhost:8000", origin.encode(), site.encode(), frozenset({b"https://page.example"}))
    assert found == foreign


def statuses(url: str, host: str | None = None, **headers: str) -> list[int]:
    """How a server answers on each of these paths."""
    given = {"host": host or url.removeprefix("http://"), **headers}
    with httpx.Client(base_url=url, headers=given, timeout=PATIENCE, trust_env=False) as client:
        plain = client.post("/predict", content=BODY, headers={"content-type": "text/plain"})
        found = [post(client), plain, client.get("/v1/models"), client.get("/livez")]
    assert all(each.status_code == 200 or "message" in each.text or "error" in each.text for each in found)
    return [each.status_code for each in found]


def test_a_name_that_points_here_reaches_no_server_without_keys(classifier: Classifier) -> None:
    with listening(service(classifier)) as url:
        assert statuses(url) == [200] * 4
        assert statuses(url, "localhost:1") == [200] * 4
        # Whoever probes may ask for any name, and learns nothing.
        assert statuses(url, "evil.example") == [421, 421, 421, 200]
        error = httpx.get(f"{url}/v1/models", headers={"host": "evil.example"}, trust_env=False).json()["error"]
    assert error["type"] == "misdirected"
    assert "--allowed-host" in error["message"]


def test_hosts_can_be_added_or_all_be_allowed(classifier: Classifier) -> None:
    for names, expected in ((("app.example",), [200, 421]), (("*",), [200, 200])):
        with listening(service(classifier, Settings(allowed_host=names))) as url:
            assert statuses(url) == [200] * 4
            assert [statuses(url, host)[0] for host in ("app.example:443", "evil.example")] == expected


def test_with_keys_or_for_others_any_name_will_do_unless_names_are_given(classifier: Classifier) -> None:
    with listening(service(classifier, keys=Keys([KEY]))) as url:
        assert statuses(url, "app.example", authorization=f"Bearer {KEY}") == [200] * 4
    with listening(service(classifier, Settings(host="0.0.0.0", no_auth=True))) as url:
        assert statuses(url, "app.example") == [200] * 4
    with listening(service(classifier, Settings(allowed_host=("app.example",)), keys=Keys([KEY]))) as url:
        assert statuses(url, "evil.example", authorization=f"Bearer {KEY}") == [421, 421, 421, 200]


def test_no_page_of_another_origin_can_use_a_server_without_keys(classifier: Classifier) -> None:
    with listening(service(classifier)) as url:
        assert statuses(url, origin="https://evil.example") == [403, 403, 200, 200]
        assert statuses(url, **{"sec-fetch-site": "same-site"}) == [403, 403, 200, 200]
        assert statuses(url, origin=url) == [200] * 4
    with listening(service(classifier, Settings(cors_origin=("https://page.example",)))) as url:
        assert statuses(url, origin="https://page.example", **{"sec-fetch-site": "cross-site"}) == [200] * 4


@pytest.mark.parametrize("name", ["http://app.example", "app.example:80", "a b", "::1"])
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="allowed-host"):
        Settings(allowed_host=(name,))


@pytest.mark.parametrize(
    "origin", ["page.example", "https://page.example/", "https://", "https://\udcff", "ht tps://a"]
)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(ConfigError, match=r"--cors-origin .* is not an origin: write https://www\.example\.org"):
        Settings(cors_origin=(origin,))


def test_pages_of_other_origins_may_ask_only_if_told(classifier: Classifier) -> None:
    origin = "https://desk.example"
    with serving(service(classifier)) as client:
        assert "access-control-allow-origin" not in post(client, origin=origin).headers
    with serving(service(classifier, Settings(cors_origin=(origin,)))) as client:
        assert post(client, origin=origin).headers["access-control-allow-origin"] == origin
        assert "access-control-allow-origin" not in post(client, origin="https://evil.example").headers


def test_no_page_loads_from_elsewhere_unless_told(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        assert client.get("/docs").status_code == 404
    with serving(service(classifier, Settings(docs=True))) as client:
        assert client.get("/docs").status_code == 200
