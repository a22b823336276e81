"""All routes: what is dispatched, guarded, counted and described is the same for every route."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.service.processes import until
from tests.service.server import service_of, serving
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.application import routers
from textcls.server.models import registry
from textcls.server.settings import Settings

KEY, ADMIN = "key-of-a-client-that-may", "key-of-the-administrator"
ALL = Settings(docs=True)
NAME = re.compile(r"\{(\w+)\}")


class Route(NamedTuple):
    """A method and a path that are answered."""

    method: str
    path: str


ROUTES = [
    Route(method, route.path_format)
    for router in routers(ALL)
    for route in router.routes
    if isinstance(route, APIRoute) and route.name != "no_administration"
    for method in route.methods or ()
]
NO_KEY = {
    ("GET", "/"),
    ("GET", "/page/{name}"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/v2/health/live"),
    ("GET", "/v2/health/ready"),
    ("GET", "/health"),
    ("GET", "/ping"),
}
ADMIN_KEY = {("POST", "/v1/admin/reload")}
EITHER_KEY = {("GET", "/metrics")}
UNDESCRIBED = {
    ("GET", "/page/{name}"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
}
TEXTS_ALONE = ("/v1/classify", "/predict", "/", "/invocations", "/models/{name}")
BODY = {
    "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["my card"]}],
    "input": "my card",
    "instances": ["my card"],
}


@contextmanager
def asking(classifier: Classifier, settings: Settings = ALL, *, keys: bool = False) -> Iterator[httpx.Client]:
    """A client of a service with all routes, with or without keys."""
    models = [registry.serve(classifier, "tickets", "3")]
    api, admin = (Keys([key] if keys else []) for key in (KEY, ADMIN))
    service = service_of(models, settings, keys=api, admin_keys=admin)
    with serving(service) as client:
        yield client


@pytest.fixture(scope="module")
def client(classifier: Classifier) -> Iterator[httpx.Client]:
    with asking(classifier) as found:
        yield found


@pytest.fixture(scope="module")
def locked(classifier: Classifier) -> Iterator[httpx.Client]:
    with asking(classifier, keys=True) as found:
        yield found


def path_of(route: Route) -> str:
    """A path that is this route's."""
    names = {"name": "page.mjs" if route.path.startswith("/page/") else "tickets", "version": "3", "label": "a/b"}
    return NAME.sub(lambda match: names[match[1]], route.path)


def ask(client: httpx.Client, route: Route, key: str | None = None) -> httpx.Response:
    body = {"inputs": "my card"} if route.path in TEXTS_ALONE else BODY
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    about_texts = route.method == "POST" and route not in ADMIN_KEY
    return client.request(route.method, path_of(route), json=body if about_texts else None, headers=headers)


def counted(client: httpx.Client) -> dict[str, float]:
    """How many requests were counted, by their route."""
    found: dict[str, float] = {}
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("textcls_requests_total{"):
            label = line.partition('route="')[2].partition('"')[0]
            found[label] = found.get(label, 0) + float(line.rpartition(" ")[2])
    return found


def test_no_two_routes_are_the_same() -> None:
    assert len(set(ROUTES)) == len(ROUTES)


def test_every_route_is_described_and_whatever_is_described_is_a_route(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    described = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert described == set(ROUTES) - UNDESCRIBED


def test_the_description_names_the_key_that_is_asked_for(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for route in set(ROUTES) - UNDESCRIBED:
        wanted: list[dict[str, list[str]]] | None
        wanted = None if route in NO_KEY else [{"adminKey": []}] if route in ADMIN_KEY else [{"key": []}]
        assert paths[route.path][route.method.lower()].get("security") == wanted, route.path


def test_these_routes_and_no_others_are_open_without_a_key(locked: httpx.Client) -> None:
    assert {route for route in ROUTES if ask(locked, route).status_code != 401} == NO_KEY


def test_each_key_opens_its_own_routes(locked: httpx.Client) -> None:
    everything = set(ROUTES)
    for key, opened in ((KEY, everything - ADMIN_KEY), (ADMIN, NO_KEY | ADMIN_KEY | EITHER_KEY)):
        assert {route for route in ROUTES if ask(locked, route, key).status_code != 401} == opened


@pytest.mark.parametrize(
    ("method", "path", "unlocked"),
    [
        ("POST", "/livez", 405),  # Whoever probes may do so in any way.
        ("HEAD", "/livez", 200),
        ("PUT", "/", 401),
        ("POST", "/page/page.mjs", 401),
        ("GET", "/page/nothing", 404),
        ("POST", "/v2/health/live", 401),
        ("POST", "/metrics", 401),
        ("GET", "/predict", 401),
        ("GET", "/nowhere", 401),
    ],
)
def test_without_a_key_a_path_tells_nobody_more_than_its_routes_do(
    locked: httpx.Client, method: str, path: str, unlocked: int
) -> None:
    assert locked.request(method, path).status_code == unlocked


@pytest.mark.parametrize("path", ["/v1/admin/reload", "/v1/admin/nothing", "/v1/admin/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_below_admin_is_told_without_the_admin_key_be_it_there_or_not(
    client: httpx.Client, locked: httpx.Client, method: str, path: str
) -> None:
    assert locked.request(method, path, headers={"x-api-key": KEY}).status_code == 401
    assert locked.request(method, path, headers={"x-api-key": ADMIN}).status_code in (404, 405, 409)
    assert client.request(method, path).status_code == 403


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route))
def test_a_request_is_counted_as_its_route(client: httpx.Client, route: Route) -> None:
    before = counted(client)
    assert ask(client, route).status_code == (403 if route in ADMIN_KEY else 200)
    label = route.path
    after = counted(client)
    # The counts are a request, too: the one before this has been counted meanwhile.
    expected = {**before, label: before.get(label, 0) + 1}
    expected["/metrics"] = expected.get("/metrics", 0) + 1
    assert after == expected


@pytest.mark.parametrize(
    ("method", "path", "label", "status"),
    [
        ("GET", "/nowhere", "other", 404),
        ("GET", "/livez/", "other", 404),
        ("POST", "/models/a/b", "other", 404),
        ("POST", "/V1/CLASSIFY", "other", 404),
        ("DELETE", "/predict", "/predict", 405),
        ("PUT", "/v1/models/my-secret", "/v1/models/{name}", 405),
        ("PUT", "/models/a:b", "/models/{name}", 405),
        ("GET", "/v1/classify", "/v1/classify", 405),
        ("DELETE", "/metrics", "/metrics", 405),
        ("PUT", "/", "/", 405),
        ("GET", "/page/my/secret", "other", 404),
    ],
)
def test_whatever_is_no_route_is_refused_and_counted_without_its_path(
    client: httpx.Client, method: str, path: str, label: str, status: int
) -> None:
    before = counted(client).get(label, 0)
    response = client.request(method, path)
    assert response.status_code == status
    assert "error" in response.json()
    assert (response.headers.get("allow") is None) == (status == 404)
    after = counted(client)
    assert after[label] == before + (2 if label == "/metrics" else 1)
    assert set(after) <= {route.path for route in ROUTES} | {"other", "/v1/admin/{path}"}


def test_what_settings_leave_out_answers_no_more_and_is_not_described(classifier: Classifier) -> None:
    with asking(classifier, Settings(page=False), keys=True) as client:
        headers = {"x-api-key": KEY}
        refused = client.get("/", headers=headers)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        for path in ("/page/page.mjs", "/docs"):
            assert client.get(path, headers=headers).status_code == 404
        assert client.post("/", json={"inputs": "my card"}, headers=headers).status_code == 200
        described = client.get("/openapi.json", headers=headers).json()["paths"]
        assert list(described["/"]) == ["post"]


def test_a_large_answer_about_something_else_than_texts_is_held_like_any_other(classifier: Classifier) -> None:
    service = service_of([registry.serve(classifier, "tickets")], ALL)
    most = service.budget.most
    with serving(service) as client:
        size = len(client.get("/openapi.json").content)
        until(lambda: service.budget.held == 0)
        service.budget.change(most - size + 1, 0)
        assert client.get("/openapi.json").json()["error"]["type"] == "overloaded"
        service.budget.change(-1, 0)
        assert client.get("/openapi.json").status_code == 200
