"""The service as a FastAPI application: mounted, tested and served by others, it answers as `textcls serve` does."""

import asyncio
import contextlib
import gc
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from starlette.exceptions import HTTPException as StarletteException
from starlette.requests import Request as StarletteRequest
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.service.clients import JSON, KEYS, LONG
from tests.service.processes import free_port, until
from tests.service.server import SlowClassifier, TestClient, awaited, local, service
from textcls import Classifier
from textcls.errors import ArtifactError, ConfigError, SurroundingsError
from textcls.server import Settings, create_app
from textcls.server.admission.auth import Keys
from textcls.server.application import application
from textcls.server.routes.dependencies import WITH_KEY, require_key

TEXT = "my card was charged twice"


def asked() -> list[tuple[str, str, Any, dict[str, str]]]:
    """Requests of all kinds: method, path, body and headers."""
    classify = [
        {"inputs": TEXT},
        {"inputs": [TEXT, "where is my parcel", ""], "top_k": 2},
        {"inputs": TEXT, "explain": True},
        {"inputs": TEXT, "explain": {"label": "billing", "against": "shipping"}},
        {"inputs": TEXT, "explain": {"label": "nothing"}},
        {"inputs": TEXT, "model": "other"},
        {"inputs": [TEXT] * 65},
        {"inputs": []},
        {"inputs": 3},
        {"wrong": TEXT},
        [],
        "text",
    ]
    found: list[tuple[str, str, Any, dict[str, str]]] = [("POST", "/v1/classify", body, {}) for body in classify]
    found += [
        ("POST", "/predict", {"inputs": TEXT}, {}),
        ("POST", "/v2/models/tickets/infer", {"inputs": [one_input([TEXT])]}, {}),
        ("POST", "/v2/models/none/infer", {"inputs": [one_input([TEXT])]}, {}),
        ("POST", "/v1/models/tickets:predict", {"instances": [TEXT]}, {}),
        ("POST", "/", {"inputs": TEXT}, {}),
        ("POST", "/classify", {"input": TEXT, "model": "tickets"}, {}),
        ("POST", "/v1/admin/reload", None, {}),
        ("DELETE", "/v1/models/tickets", None, {}),
        ("POST", "/v1/classify", {"inputs": TEXT}, {"origin": "https://elsewhere.example"}),
        ("POST", "/v1/classify", {"inputs": TEXT}, {"content-type": "text/plain"}),
    ]
    paths = ("/", "/livez", "/readyz", "/v1/models", "/v2", "/v2/models/tickets", "/info", "/health", "/page/none.css")
    found += [("GET", path, None, {}) for path in paths]
    found += [
        ("GET", "/", None, {"accept": "text/html"}),
        ("GET", "/v1/classify", None, {}),
        ("PUT", "/livez", None, {}),
    ]
    return [*found, ("HEAD", "/livez", None, {}), ("HEAD", "/", None, {})]


def one_input(texts: list[str]) -> dict[str, Any]:
    return {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}


def told(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    return answer.status_code, answer.content, {k: v for k, v in answer.headers.items() if k != "x-request-id"}


def send(client: Any, method: str, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
    content = None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json", **headers} if content is not None else headers
    found: httpx.Response = client.request(method, path, content=content, headers=given)
    return found


@pytest.fixture(scope="module")
def app(model_path: Path) -> FastAPI:
    """The service of one model, which is called tickets."""
    return create_app(f"tickets={model_path}")


@pytest.mark.parametrize("keys", [Keys(), Keys([KEYS[0]])], ids=["open", "locked"])
def test_the_short_cut_answers_as_fastapi_does(classifier: Classifier, keys: Keys) -> None:
    with_it, without = (
        local(application(service(classifier, keys=keys), short_cut=short_cut)) for short_cut in (True, False)
    )
    for request in asked():
        for key in ({}, {"x-api-key": KEYS[0]}):
            request[3].update(key)
            assert told(send(with_it, *request)) == told(send(without, *request)), request


def test_a_dependency_that_is_exchanged_takes_the_place_of_ours(classifier: Classifier) -> None:
    app = application(service(classifier, keys=Keys([KEYS[0]])))
    client = local(app)
    assert client.post("/v1/classify", json={"inputs": TEXT}).status_code == 401

    async def of_an_account(request: Request) -> None:
        if "x-account" not in request.headers:
            raise HTTPException(403, "There is no account.")

    app.dependency_overrides[require_key] = of_an_account
    refused = client.post("/v1/classify", json={"inputs": TEXT})
    assert (refused.status_code, refused.json()["error"]["message"]) == (403, "There is no account.")
    for path in ("/v1/classify", "/predict"):
        assert client.post(path, json={"inputs": TEXT}, headers={"x-account": "1"}).status_code == 200


def test_middleware_of_somebody_else_stands_before_every_route(classifier: Classifier) -> None:
    app = application(service(classifier))
    app.add_middleware(Marked)
    for path in ("/v1/classify", "/predict"):
        assert local(app).post(path, json={"inputs": TEXT}).headers["x-mine"] == "yes"


def test_a_route_of_somebody_else_stands_among_ours(classifier: Classifier) -> None:
    app = application(service(classifier))

    @app.get("/mine/{name}")
    def mine(name: str) -> str:
        return name

    client = local(app)
    assert client.get("/mine/one").json() == "one"
    assert 'textcls_requests_total{route="/mine/{name}",status="200"} 1' in client.get("/metrics").text
    assert "/mine/{name}" in client.get("/openapi.json").json()["paths"]


def test_below_a_prefix_the_description_says_so(app: FastAPI) -> None:
    mine = FastAPI()
    mine.mount("/texts", app)
    assert TestClient(mine).get("/texts/openapi.json").json() == {"servers": [{"url": "/texts"}], **app.openapi()}


class Marked:
    """Somebody's middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-mine", b"yes")]
            await send(message)

        await self.app(scope, receive, marked)


def test_below_a_prefix_it_stands_beside_the_routes_and_the_middleware_of_others(app: FastAPI) -> None:
    mine = FastAPI()
    mine.add_middleware(Marked)
    mine.mount("/texts", app)

    @mine.get("/hello")
    def hello() -> str:
        return "world"

    client = TestClient(mine)
    assert client.get("/hello").json() == "world"
    answer = client.post("/texts/v1/classify", json={"inputs": TEXT})
    assert (answer.status_code, answer.headers["x-mine"]) == (200, "yes")
    assert answer.json()["results"][0]["label"] == "billing"
    assert client.get("/texts/page/none.css").status_code == 404
    assert client.get("/texts/").json() == {"status": "alive"}
    assert "<html" in client.get("/texts/", headers={"accept": "text/html"}).text
    assert client.get("/v1/classify").status_code == 404


def test_keys_and_limits_are_those_of_the_settings(model_path: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"desk:{KEYS[0]}\n")
    settings = Settings(api_keys_file=keys, max_inputs=2, page=False, docs=True)
    client = TestClient(create_app(model_path, settings=settings))
    assert client.post("/v1/classify", json={"inputs": TEXT}).status_code == 401
    known = {"authorization": f"Bearer {KEYS[0]}"}
    assert client.post("/v1/classify", json={"inputs": TEXT}, headers=known).status_code == 200
    assert client.post("/v1/classify", json={"inputs": [TEXT] * 3}, headers=known).status_code == 413
    assert client.get("/metrics").status_code == 401
    assert client.get("/livez").status_code == 200
    assert client.get("/docs").status_code == 401
    assert client.get("/docs", headers=known).status_code == 200
    # By POST it answers, as others do.
    assert client.get("/", headers={"accept": "text/html", **known}).status_code == 405


def test_a_route_of_somebody_else_that_needs_a_key_is_refused_as_ours_are(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(f"desk:{KEYS[0]}\n")
    app = create_app(model_path, settings=Settings(api_keys_file=tmp_path / "keys.txt"))

    @app.get("/mine", dependencies=[Depends(require_key)])
    def mine() -> str:
        return "mine"

    with TestClient(app) as client:
        refused = client.get("/mine")
    assert refused.status_code == 401
    assert refused.json()["error"]["type"] == "unauthorized"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_an_application_that_is_gone_keeps_no_file_open(model_path: Path) -> None:
    def opened() -> int:
        gc.collect()
        return len(list(Path("/proc/self/fd").iterdir()))

    create_app(model_path)
    before = opened()
    for _ in range(3):
        create_app(model_path)
    assert opened() == before


def test_models_are_exchanged_and_counted(model_path: Path, several_labels_path: Path, tmp_path: Path) -> None:
    admin, model = tmp_path / "admin", tmp_path / "tickets.onnx"
    admin.write_text(KEYS[1])
    model.write_bytes(model_path.read_bytes())
    with TestClient(create_app(model, settings=Settings(admin_key_file=admin))) as client:
        before = client.get("/v1/models").json()["models"][0]["sha256"]
        model.write_bytes(several_labels_path.read_bytes())
        done = client.post("/v1/admin/reload", headers={"authorization": f"Bearer {KEYS[1]}"})
        assert done.status_code == 200, done.text
        assert client.get("/v1/models").json()["models"][0]["sha256"] != before
        assert 'textcls_requests_total{path="/v1/models",status="200"} 2' in client.get(
            "/metrics", headers={"authorization": f"Bearer {KEYS[1]}"}
        ).text.replace("route=", "path=")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "shared").mkdir()
    yield tmp_path / "shared"
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_model_that_cannot_be_used_is_told_at_once_and_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    settings = Settings(runtime_dir=folder)
    with pytest.raises(ArtifactError, match="is not a model"):
        create_app(tmp_path / "m.onnx", settings=settings)
    with pytest.raises((ArtifactError, SurroundingsError)):
        create_app(tmp_path / "none.onnx", settings=settings)


def test_a_loaded_classifier_and_settings_of_another_kind_are_refused_in_a_sentence(model_path: Path) -> None:
    loaded: Any = Classifier.load(model_path)
    with pytest.raises(ConfigError, match="A Classifier cannot be served: pass the path of a model file"):
        create_app(loaded)
    with pytest.raises(ConfigError, match=r"settings are a textcls\.server\.Settings, not a dict"):
        create_app(model_path, settings={"max_inputs": 8})  # type: ignore[arg-type]


def test_a_link_to_itself_is_no_model(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    with pytest.raises(ArtifactError, match=r"loop\.onnx"):
        create_app(tmp_path / "loop.onnx", settings=Settings(runtime_dir=folder))


def test_plain_uvicorn_serves_it(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"from textcls.server import create_app\napp = create_app({str(model_path)!r})\n", encoding="utf-8"
    )
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "mine:app", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: accepts(port))
            answer = httpx.post(f"http://127.0.0.1:{port}/v1/classify", json={"inputs": TEXT})
            assert answer.json()["results"][0]["label"] == "billing"
        finally:
            process.terminate()
            assert process.wait(30) in (0, -15)


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


async def told_by_the_body(request: Request) -> None:
    """Somebody's dependency that reads the body."""
    if "secret" in (await request.body()).decode():
        raise HTTPException(403, "There is a secret in it.")


class Rewritten:
    """Somebody's middleware, which gives each request another body and other headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = json.dumps({"inputs": TEXT}).encode()

        async def other() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        kept = [(name, value) for name, value in scope["headers"] if name not in (b"content-type", b"content-length")]
        headers = [*kept, (b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await self.app({**scope, "headers": headers}, other, send)


@pytest.mark.parametrize("path", ["/v1/classify", "/predict"])
def test_a_dependency_of_somebody_else_may_read_the_body(classifier: Classifier, path: str) -> None:
    app = application(service(classifier))
    app.dependency_overrides[require_key] = told_by_the_body
    client = local(app)
    assert client.post(path, json={"inputs": TEXT}).status_code == 200
    assert client.post(path, json={"inputs": "a secret"}).status_code == 403


@pytest.mark.parametrize("path", ["/v1/classify", "/predict"])
def test_what_middleware_makes_of_a_request_is_what_is_answered(classifier: Classifier, path: str) -> None:
    app = application(service(classifier))
    app.add_middleware(Rewritten)
    client = local(app)
    answer = client.post(path, content="nothing", headers={"content-type": "text/plain"})
    assert answer.status_code == 200, answer.text
    assert f'textcls_requests_total{{route="{path}",status="200"}} 1' in client.get("/metrics").text


def test_middleware_may_read_the_body_first(classifier: Classifier) -> None:
    app = application(service(classifier))
    seen: list[bytes] = []

    @app.middleware("http")
    async def read(request: Request, call_next: Any) -> Any:
        seen.append(await request.body())
        return await call_next(request)

    assert local(app).post("/v1/classify", json={"inputs": TEXT}).status_code == 200
    assert TEXT.encode() in seen[0]


class Repeating:
    """Somebody's middleware, which gives the whole body as often as it is asked."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b"" if scope["type"] != "http" else await StarletteRequest(scope, receive).body()

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again if scope["type"] == "http" else receive, send)


@pytest.mark.parametrize("below", [False, True])
def test_long_requests_are_answered_where_middleware_gives_the_body_again_and_again(
    classifier: Classifier, below: bool
) -> None:
    app = application(service(classifier))
    if below:

        @app.middleware("http")
        async def passed(request: Request, call_next: Any) -> Any:
            return await call_next(request)

    app.add_middleware(Repeating)
    for path in ("/v1/classify", "/predict"):
        assert local(app).post(path, content=LONG, headers=JSON).status_code == 200


def test_who_hangs_up_before_middleware_has_read_the_body_is_no_error_of_the_service(classifier: Classifier) -> None:
    asked = service(classifier)
    app = application(asked)

    @app.middleware("http")
    async def read(request: Request, call_next: Any) -> Any:
        await request.body()
        return await call_next(request)

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        """Nobody is there."""

    with local(app) as client:
        scope = {"type": "http", "method": "POST", "path": "/v1/classify", "headers": [(b"host", b"localhost")]}
        awaited(app({**scope, "query_string": b"", "scheme": "http", "server": ("localhost", 80)}, gone, send))
        assert 'status="499"} 1' in client.get("/metrics").text


def test_what_a_route_of_somebody_else_refuses_is_told_as_fastapi_tells_it(model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text(f"desk:{KEYS[0]}\n")
    app = create_app(model_path, settings=Settings(api_keys_file=tmp_path / "keys.txt"))

    @app.get("/mine/{status}")
    def mine(status: int) -> str:
        raise HTTPException(status, {"code": 7} if status == 409 else "Not here", {"x-mine": "yes"})

    (tmp_path / "page.txt").write_text("a page")
    app.mount("/files", StaticFiles(directory=tmp_path))
    client = local(app)
    for status in (404, 405, 409, 499, 599):
        answer = client.get(f"/mine/{status}")
        told = {"detail": {"code": 7} if status == 409 else "Not here"}
        assert (answer.status_code, answer.json(), answer.headers["x-mine"]) == (status, told, "yes")
    for status in (204, 304):
        answer = client.get(f"/mine/{status}")
        assert (answer.status_code, answer.content) == (status, b"")
    assert client.get("/files/page.txt").text == "a page"
    assert client.get("/files/none.txt").status_code == 404
    assert client.post("/files/page.txt").status_code == 405
    # Whether there is such a path is told to who has a key.
    assert client.get("/nowhere").status_code == client.post("/mine/404").status_code == 401


def test_below_a_prefix_what_nobody_answers_is_named_with_it(app: FastAPI) -> None:
    mine = FastAPI()
    mine.mount("/texts", app)
    client = TestClient(mine)
    for path in ("/texts/nowhere", "/texts/page/none.css"):
        refused = client.get(path)
        assert refused.status_code == 404
        assert "/texts/openapi.json lists" in refused.json()["error"]["message"]
    assert client.get("/texts/v1/classify").status_code == 405
    assert 'route="other",status="404"' in client.get("/texts/metrics").text


class NobodyError(Exception):
    """Somebody's own."""


@pytest.mark.parametrize("error", [StarletteException(401, "no account"), NobodyError()], ids=["Starlette's", "own"])
def test_what_a_dependency_of_somebody_else_raises_is_handled_as_they_say(
    classifier: Classifier, error: Exception
) -> None:
    app = application(service(classifier))

    async def require_account() -> None:
        raise error

    @app.exception_handler(NobodyError)
    async def refuse(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": "no account"}, 401)

    app.dependency_overrides[require_key] = require_account
    client = local(app)
    assert client.post("/v1/classify", json={"inputs": TEXT}).status_code == 401
    refused = client.post("/v2/models/tickets/infer", json={"inputs": [one_input([TEXT])]})
    assert (refused.status_code, refused.json()) == (401, {"error": "no account"})


def test_routes_that_are_added_later_leave_the_description_whole(classifier: Classifier) -> None:
    app = application(service(classifier))
    client = local(app)
    before = client.get("/openapi.json").json()["components"]["schemas"]

    @app.get("/later")
    def later() -> str:
        return "later"

    after = client.get("/openapi.json").json()
    assert "/later" in after["paths"]
    assert before.keys() <= after["components"]["schemas"].keys()


def test_what_a_thread_holds_is_given_back_though_the_loop_has_ended(slow: SlowClassifier) -> None:
    asked = service(slow, Settings(request_seconds=0.2))
    client = local(application(asked))  # A loop for each request.
    assert client.post("/v1/classify", content=LONG, headers=JSON).status_code == 504
    SlowClassifier.gate.set()
    until(lambda: (asked.budget.held, asked._jobs) == (0, 0))


def test_an_application_below_ours_may_leave_out_headers(classifier: Classifier) -> None:
    async def bare(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"bare"})

    app = application(service(classifier))
    app.mount("/bare", bare)
    assert local(app).get("/bare/").text == "bare"


def test_what_is_mounted_refuses_by_itself(classifier: Classifier) -> None:
    app, router = application(service(classifier)), APIRouter()

    @router.get("/mine")
    def mine() -> str:
        return "mine"

    app.mount("/below", router)
    app.host("other.example", router)
    client = local(app)
    for url in ("/below/mine", "http://other.example/mine"):
        assert client.get(url).json() == "mine"
        refused = client.post(url)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET")
        assert refused.json() == {"detail": "Method Not Allowed"}
        assert client.get(f"{url}/none").json() == {"detail": "Not Found"}


def test_a_route_of_somebody_else_that_answers_only_head_is_asked(classifier: Classifier) -> None:
    app = application(service(classifier))

    @app.head("/mine")
    def mine() -> JSONResponse:
        return JSONResponse(None, 202)

    client = local(app)
    assert client.head("/mine").status_code == 202
    refused = client.get("/mine")
    assert (refused.status_code, refused.headers["allow"]) == (405, "HEAD")


def test_an_application_mounted_in_ours_may_depend_on_our_keys(classifier: Classifier) -> None:
    app, mine = application(service(classifier, keys=Keys([KEYS[0]]))), FastAPI()

    @mine.get("/mine", dependencies=[*WITH_KEY])
    def answer() -> str:
        return "mine"

    app.mount("/below", mine)
    client = local(app)
    assert client.get("/below/mine", headers={"x-api-key": KEYS[0]}).json() == "mine"
    refused = client.get("/below/mine")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.json()["detail"].startswith("A key is needed")


def test_a_router_that_is_included_without_its_application_says_what_to_do(app: FastAPI) -> None:
    mine = FastAPI()
    mine.include_router(app.router)
    with pytest.raises(RuntimeError, match=r"/livez needs the whole application .* mount that"):
        TestClient(mine).get("/livez")


def test_an_answer_has_one_id_however_many_services_it_passes(classifier: Classifier) -> None:
    app = application(service(classifier))
    app.mount("/again", application(service(classifier)))
    for headers in ({}, {"x-request-id": "given"}):
        ids = local(app).get("/again/livez", headers=headers).headers.get_list("x-request-id")
        assert len(ids) == 1
        assert not headers or ids == ["given"]


def test_without_its_folder_the_models_that_are_loaded_answer_on(
    model_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with TestClient(create_app(model_path, settings=Settings(runtime_dir=folder))) as client:
        (shared,) = folder.iterdir()
        shutil.rmtree(shared)
        until(lambda: "Models are not exchanged any more" in caplog.text)
        for path in ("/v1/classify", "/predict"):
            assert client.post(path, json={"inputs": TEXT}).status_code == 200
    assert caplog.text.count("Models are not exchanged any more") == 1
    assert "Traceback" not in caplog.text


def test_models_are_not_exchanged_by_way_of_a_folder_that_was_cleared(model_path: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "shared").mkdir()
    (key := tmp_path / "admin").write_text("a" * 32)
    settings = Settings(runtime_dir=folder, admin_key_file=key)
    with TestClient(create_app(model_path, settings=settings)) as client:
        (shared,) = folder.iterdir()
        shutil.rmtree(shared)
        shared.mkdir()
        answer = client.post("/v1/admin/reload", headers={"authorization": f"Bearer {'a' * 32}"})
    assert answer.status_code == 409
    assert "generation.json, which the workers share, cannot be used" in answer.text


def test_a_process_whose_model_takes_too_long_to_load_ends_as_others_do(model_path: Path, folder: Path) -> None:
    code = f"""
from pathlib import Path
from textcls import Classifier
from textcls.errors import SurroundingsError
from textcls.server import Settings, create_app
from textcls.server.models import loading

loading.load = lambda request, now: [Classifier.load({str(model_path)!r}) for _ in range(20)]
try:
    create_app("m.onnx", settings=Settings(load_seconds=0.01, runtime_dir=Path({str(folder)!r})))
except SurroundingsError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "could not be read and tested within load_seconds" in done.stdout


def test_a_route_that_is_put_before_ours_or_taken_away_counts_for_the_short_cut_too(classifier: Classifier) -> None:
    app = application(service(classifier))
    app.router.routes.insert(0, Route("/v1/classify", lambda request: JSONResponse("mine"), methods=["POST"]))
    assert local(app).post("/v1/classify", json={"inputs": TEXT}).json() == "mine"
    app = application(service(classifier))
    app.router.routes.clear()
    assert local(app).post("/v1/classify", json={"inputs": TEXT}).status_code == 404


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no process")
def test_a_forked_process_that_ends_leaves_the_folder_of_its_parent(model_path: Path, folder: Path) -> None:
    code = f"""
import os
from pathlib import Path
from textcls.server import Settings, create_app

app = create_app({str(model_path)!r}, settings=Settings(runtime_dir=Path({str(folder)!r})))
if not (child := os.fork()):
    raise SystemExit(0)
os.waitpid(child, 0)
print(len(list(Path({str(folder)!r}).glob("*/generation.json"))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_each_loop_has_one_task_in_the_background_however_loops_take_turns(model_path: Path) -> None:
    app = create_app(model_path)
    loops = [asyncio.new_event_loop() for _ in range(2)]

    async def ask() -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            await client.get("/livez")
        return len(asyncio.all_tasks())

    # The one that asks, the one in the background, and what that has begun once its turn has come.
    assert [loop.run_until_complete(ask()) for _ in range(5) for loop in loops][2:] == [3] * 8
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()


def test_an_application_without_a_model_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="There is no model to serve: name a file"):
        create_app()
