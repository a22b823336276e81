"""The service as an operator meets it: keys, limits, several models, reloads, metrics, logs, signals."""

import asyncio
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import httpx
import pytest
import uvicorn
from click.testing import CliRunner

from textcls import ArtifactError, Classifier, ConfigError, SurroundingsError, cost
from textcls.cli import main
from textcls.server import answers, metrics, registry, routes
from textcls.server.auth import Keys
from textcls.server.gathering import Gathering
from textcls.server.listening import listen
from textcls.server.metrics import Counts
from textcls.server.reload import Shelf
from textcls.server.server import Server
from textcls.server.service import Service
from textcls.server.settings import Settings, check_exposure
from textcls.server.supervisor import Worker
from textcls.server.tracing import Tracing

ROOT = Path(__file__).parent.parent
BODY = b'{"inputs": "my card was charged twice"}'
JSON = {"content-type": "application/json"}
LONG = json.dumps({"inputs": "my card was charged twice " * 700}).encode()
KEYS = ("key-of-the-first-client", "key-of-the-second-client")
ADMIN = "key-of-the-administrator"


def until(true: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait until something holds; return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    pytest.fail("it did not come to hold")


@contextmanager
def serving(service: Service) -> Iterator[httpx.Client]:
    with listen("127.0.0.1", 0) as listener:
        server = Server(service, drain_seconds=0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join(20)


def service(classifier: Classifier, settings: Settings | None = None, **given: Any) -> Service:
    return Service(registry.generation(1, [registry.serve(classifier, "tickets")]), settings or Settings(), **given)


MAIN = "from textcls.cli import main; main(prog_name='textcls')"


@contextmanager
def command(
    *arguments: str | Path, env: dict[str, str] | None = None, code: str = MAIN
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `textcls serve`, and the address that it printed."""
    line = [sys.executable, "-u", "-c", code, "serve", *map(str, arguments), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, text=True, env={**os.environ, **(env or {})}, **pipes) as process:  # type: ignore[call-overload]
        try:
            found = re.search(r"on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert found, process.stderr.read()
            yield process, found[1]
        finally:
            process.kill()


def post(
    client: httpx.Client, content: bytes = BODY, headers: Mapping[str, str] = MappingProxyType({}), **more: str
) -> httpx.Response:
    return client.post("/v1/classify", content=content, headers={**JSON, **headers, **more})


def message(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    found: str = response.json()["error"]["message"]
    return found


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def numbers(client: httpx.Client, **headers: str) -> dict[str, float]:
    lines = client.get("/metrics", headers=headers).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=10)


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


class SlowClassifier(Classifier):
    """Answers when it is let."""

    gate = threading.Event()

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        self.gate.wait(20)
        return super().predict(texts, explain=explain, threshold=threshold)


@pytest.fixture
def slow(model_path: Path) -> Iterator[SlowClassifier]:
    SlowClassifier.gate.clear()
    classifier = SlowClassifier.load(model_path)
    assert isinstance(classifier, SlowClassifier)
    yield classifier
    SlowClassifier.gate.set()


# Keys


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


def test_keys_come_from_a_file_and_from_the_environment_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from textcls.server import auth

    path = tmp_path / "keys"
    path.write_text(f"# the first\n{KEYS[0]}\n\n  # an indented comment\n")
    monkeypatch.setenv("TEXTCLS_API_KEYS", f"{KEYS[1]},{ADMIN}")
    keys, admin = auth.load(Settings(api_keys_file=path))
    assert all(key.encode() in keys for key in (*KEYS, ADMIN))
    assert b"" not in keys
    assert b"# an indented comment" not in keys
    assert not admin


@pytest.mark.parametrize(
    ("content", "said"), [("short\n", "at least 16"), ("\n", "holds no key"), (None, "cannot be read")]
)
def test_keys_that_are_none_are_refused_without_being_shown(tmp_path: Path, content: str | None, said: str) -> None:
    from textcls.server import auth

    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said) as caught:
        auth.load(Settings(api_keys_file=path))
    assert "short\n" not in str(caught.value)


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
        with httpx.Client(base_url=url) as client:
            assert post(client, headers=bearer(KEYS[0])).status_code == 200
            assert post(client, headers=bearer(ADMIN)).status_code == 401
        tree = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        process.terminate()
        said = "".join(process.communicate(timeout=20))
    assert '"message": "request"' in said
    assert not any(key in said + tree for key in (KEYS[0], ADMIN))


# Limits


def test_a_long_request_beyond_the_queue_is_answered_429_with_when_to_come_back(slow: SlowClassifier) -> None:
    with serving(service(slow, Settings(max_queue=1))) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(post, client, LONG)
        until(lambda: numbers(client)["textcls_queue_depth"] == 1)
        refused = post(client, LONG)
        assert message(refused, 429) == "1 long requests are waiting, and max_queue is 1: try later."
        assert refused.headers["retry-after"] == "1"
        SlowClassifier.gate.set()
        assert first.result().status_code == 200
        assert post(client, LONG).status_code == 200


def test_a_request_of_some_length_that_is_alone_takes_no_place_in_the_queue(slow: SlowClassifier) -> None:
    some = json.dumps({"inputs": "my card was charged twice " * 200}).encode()
    SlowClassifier.gate.set()
    with serving(service(slow, Settings())) as client:
        assert post(client, some).status_code == 200
        assert "textcls_queue_wait_seconds_count" not in numbers(client)
        assert post(client, LONG).status_code == 200
        assert numbers(client)["textcls_queue_wait_seconds_count"] == 1


def test_at_the_deadline_a_long_request_is_answered_504_and_its_place_stays_taken(slow: SlowClassifier) -> None:
    with serving(service(slow, Settings(max_queue=1, request_seconds=0.1))) as client:
        assert "request_seconds, which is 0.1" in message(post(client, LONG), 504)
        # The thread cannot be stopped: as long as it works, the work counts.
        assert post(client, LONG).status_code == 429
        SlowClassifier.gate.set()
        until(lambda: post(client, LONG).status_code == 200)


def test_an_explained_answer_has_a_bound_that_the_refusal_names(classifier: Classifier) -> None:
    with serving(service(classifier, Settings(max_explained=100))) as client:
        text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
        said = message(post(client, json.dumps({"inputs": text, "explain": True}).encode()), 413)
        assert "15 tokens x 7 labels, and max_explained is 100" in said
        assert post(client, json.dumps({"inputs": text, "explain": True, "top_k": 6}).encode()).status_code == 200
        assert post(client, json.dumps({"inputs": text}).encode()).status_code == 200


def test_bodies_that_arrive_in_pieces_share_a_bound(classifier: Classifier) -> None:
    settings = Settings(max_held_bytes=1_000_000)
    head = b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += b"content-length: 60000\r\n\r\n"
    with serving(service(classifier, settings)) as client, ExitStack() as stack:
        *some, last = (stack.enter_context(connect(client)) for _ in range(9))
        for each in some:
            each.sendall(head + b" " * 59_000)
        until(lambda: numbers(client)["textcls_held_bytes"] == 8 * 59_000)
        last.sendall(head + b" " * 59_000)
        answer = last.recv(1000)
        assert answer.startswith(b"HTTP/1.1 429")
        assert b"max_held_bytes is 1,000,000, half of it for bodies: try later." in answer
        some[0].sendall(BODY.ljust(1_000))
        assert some[0].recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/classify HT",
        b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
        b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /liv",
    ],
    ids=["nothing", "half a head", "half a body", "half a second request"],
)
def test_who_sends_too_slowly_is_hung_up_on_while_others_are_served(classifier: Classifier, sent: bytes) -> None:
    with serving(service(classifier, Settings(receive_seconds=0.3))) as client, connect(client) as connection:
        connection.sendall(sent)
        assert post(client).status_code == 200
        assert b"HTTP/1.1 408" in everything(connection)


def test_who_does_not_take_the_answer_is_hung_up_on(classifier: Classifier) -> None:
    body = json.dumps({"inputs": ["word " * 64] * 64, "explain": True}).encode()
    head = "POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    with serving(service(classifier, Settings(receive_seconds=0.3))) as client, connect(client) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(8):  # more than the buffers of both sides
            connection.sendall(head.encode() + body)
        assert until(lambda: numbers(client)['textcls_connections_closed_total{reason="answer not taken"}']) == 1


def test_what_is_no_http_is_answered_400_in_the_form_of_all_errors(classifier: Classifier) -> None:
    with serving(service(classifier)) as client, connect(client) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01 not http\r\n\r\n")
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "bad_request"


# Several models


def test_models_are_chosen_by_name_and_the_header_says_which_answered(model_path: Path, tmp_path: Path) -> None:
    sources = registry.resolve([f"a={model_path}", f"b@2026-11={model_path}"])
    served = [registry.serve(Classifier.load(s.path), s.name, s.version) for s in sources]
    with serving(Service(registry.generation(1, served), Settings())) as client:
        headers = [post(client).headers["x-model"]]
        headers += [post(client, json.dumps({"inputs": "a", "model": m}).encode()).headers["x-model"] for m in "ab"]
        digest = served[0].sha256
        assert headers == [
            f'a; version="{digest[:12]}"; sha256="{digest}"',
            f'a; version="{digest[:12]}"; sha256="{digest}"',
            f'b; version="2026-11"; sha256="{digest}"',
        ]
        said = message(post(client, b'{"inputs": "a", "model": "c"}'), 404)
        assert said == "There is no model of this name; there are a, b."
        cards = client.get("/v1/models").json()["models"]
        assert [(card["name"], card["default"]) for card in cards] == [("a", True), ("b", False)]


def test_a_folder_is_all_its_models(model_path: Path, tmp_path: Path) -> None:
    for name in ("b@v2.onnx", "a.onnx", "notes.txt"):
        shutil.copy(model_path, tmp_path / name)
    assert [(s.name, s.version) for s in registry.resolve([str(tmp_path)])] == [("a", None), ("b", "v2")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a=x.onnx", "a=y.onnx"], "Two models are called a"),
        (["my model.onnx"], "give it one, as in tickets=model.onnx"),
        (["a@b c=x.onnx"], "is no version"),
        (["tests"], "holds no model"),
    ],
)
def test_models_that_cannot_be_named_are_refused(arguments: list[str], said: str) -> None:
    with pytest.raises((ArtifactError, ConfigError), match=said):
        registry.resolve(arguments)


# Reload


@pytest.fixture
def shelf(model_path: Path, tmp_path: Path) -> Shelf:
    shutil.copy(model_path, tmp_path / "tickets.onnx")
    (tmp_path / "run").mkdir()
    shelf = Shelf(tmp_path / "run", [str(tmp_path / "tickets.onnx")], Settings())
    shelf.publish()
    return shelf


def test_a_reload_needs_the_admin_key_and_says_how_many_workers_took_part(shelf: Shelf) -> None:
    served = Service(shelf.load().generation, Settings(), keys=Keys(KEYS), admin_keys=Keys([ADMIN]), shelf=shelf)
    with serving(served) as client:
        assert client.post("/v1/admin/reload").status_code == 401
        assert client.post("/v1/admin/reload", headers=bearer(KEYS[0])).status_code == 401
        assert post(client, headers=bearer(ADMIN)).status_code == 401
        assert client.post("/v1/admin/reload", headers=bearer(ADMIN)).json() == {
            "generation": 2,
            "workers": 1,
            "changed_labels": [],
        }
        assert client.get("/v1/models", headers=bearer(KEYS[0])).json()["generation"] == 2


def test_without_an_admin_key_there_is_no_administration(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        assert "--admin-key-file" in message(client.post("/v1/admin/reload"), 403)


@pytest.mark.parametrize("content", [b"", b"no model", None], ids=["empty", "garbage", "truncated"])
def test_a_bad_file_leaves_the_old_model_answering_and_says_why(
    shelf: Shelf, tmp_path: Path, model_path: Path, content: bytes | None
) -> None:
    served = Service(shelf.load().generation, Settings(), admin_keys=Keys([ADMIN]), shelf=shelf)
    with serving(served) as client:
        before = post(client)
        (tmp_path / "tickets.onnx").write_bytes(model_path.read_bytes()[:-5000] if content is None else content)
        said = message(client.post("/v1/admin/reload", headers=bearer(ADMIN)), 409)
        assert said.startswith("The old models go on answering: ")
        assert "tickets.onnx" in said
        after = post(client)
        assert (after.json(), after.headers["x-model"]) == (before.json(), before.headers["x-model"])
        # A worker that starts now serves what the others serve, not the bad file.
        assert shelf.load().generation.get(None).sha256 in after.headers["x-model"]
        assert numbers(client)['textcls_reloads_total{result="refused"}'] == 1


@pytest.mark.parametrize("count", ["1", "2"])
def test_models_for_which_there_is_no_room_are_refused_and_the_old_ones_go_on_answering(
    model_path: Path, whole_tokens_path: Path, tmp_path: Path, count: str
) -> None:
    path, folder = tmp_path / "tickets.onnx", tmp_path / "run"
    folder.mkdir()
    shutil.copy(model_path, path)
    with command(path, "--workers", count, "--runtime-dir", folder) as (process, url), httpx.Client(base_url=url) as c:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
        shutil.copy(whole_tokens_path, path)
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(c)['textcls_reloads_total{result="refused"}'] == 1)
        assert post(c).status_code == 200
        assert numbers(c)["textcls_generation"] == 1
        (shared,) = folder.iterdir()
        copies = [file.name for file in shared.iterdir() if file.stat().st_size >= 20_000 and file.suffix != ".counts"]
        assert copies == [f"{sha256(model_path.read_bytes()).hexdigest()}.onnx"]
        process.terminate()
        said = process.communicate(timeout=20)[1]
    assert process.returncode == 0
    assert "cannot be written: File too large; make room there, or start the service with --runtime-dir" in said


def test_models_that_are_refused_after_they_were_copied_leave_no_copy(
    shelf: Shelf, tmp_path: Path, whole_tokens_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == "generation.json":
            raise OSError(errno.ENOSPC, "no room")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    shutil.copy(whole_tokens_path, tmp_path / "tickets.onnx")
    with pytest.raises(SurroundingsError, match=r"generation\.json cannot be written: No space left on device"):
        shelf.publish()
    assert not list(shelf.folder.glob("generation.*[0-9]"))
    assert shelf.number() == 1
    assert len(list(shelf.folder.glob("*.onnx"))) == 1


def test_a_broken_file_of_keys_is_refused_at_a_signal_and_stops_neither_workers_nor_those_that_replace_them(
    model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "keys"
    path.write_text(KEYS[0])
    with (
        command(model_path, "--workers", "2", "--api-keys-file", path) as (process, url),
        httpx.Client(base_url=url, headers=bearer(KEYS[0])) as client,
    ):
        path.write_text("half")
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client)['textcls_reloads_total{result="refused"}'] == 1)
        before = workers(process)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(workers(process)) == 2 and before[0] not in workers(process))
        found = until(lambda: (n := numbers(client))["textcls_workers"] == 2 and n)
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
        httpx.Client(base_url=url) as client,
    ):
        path.write_text(KEYS[1])
        process.send_signal(signal.SIGUSR1)
        until(lambda: numbers(client)["textcls_generation"] == 2)
        assert [post(client, headers=bearer(key)).status_code for key in KEYS] == [401, 200]


def test_copies_of_models_that_nobody_serves_any_more_are_removed(
    shelf: Shelf, tmp_path: Path, model_path: Path
) -> None:
    for _ in range(3):
        shelf.publish()
    assert len(list(shelf.folder.glob("*.onnx"))) == 1


# Metrics


def test_metrics_count_requests_texts_tokens_labels_and_scores(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        post(client)
        post(client, b'{"inputs": ["my card was charged twice", "hello"], "threshold": 1}')
        post(client, b"no json")
        client.get("/nowhere")
        found = numbers(client)
    assert found['textcls_requests_total{route="/v1/classify",status="200"}'] == 2
    assert found['textcls_requests_total{route="/v1/classify",status="422"}'] == 1
    assert found['textcls_requests_total{route="other",status="404"}'] == 1
    assert found['textcls_request_duration_seconds_count{route="/v1/classify"}'] == 3
    assert found['textcls_batch_size_sum{model="tickets"}'] == 3
    assert found['textcls_tokens_total{model="tickets"}'] == 11
    assert found['textcls_abstentions_total{model="tickets"}'] == 2
    assert found['textcls_predictions_total{label="billing",model="tickets"}'] >= 2
    assert found['textcls_score_count{model="tickets"}'] == 3
    assert found["textcls_requests_in_progress"] == 1
    assert found["textcls_workers"] == 1
    assert sum(value for name, value in found.items() if name.startswith("textcls_model_info")) == 1


def test_what_alerts_wait_for_is_counted_from_zero_before_it_happens(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        found = numbers(client)
    for result in ("done", "refused"):
        assert found[f'textcls_reloads_total{{result="{result}"}}'] == 0
    for reason in ("400", "408", "429", "answer not taken"):
        assert found[f'textcls_connections_closed_total{{reason="{reason}"}}'] == 0


def test_metrics_are_public_only_if_told(classifier: Classifier) -> None:
    settings = Settings(public_metrics=True)
    with serving(service(classifier, settings, keys=Keys(KEYS))) as client:
        assert client.get("/metrics").status_code == 200
    with serving(service(classifier, keys=Keys(KEYS), admin_keys=Keys([ADMIN]))) as client:
        assert client.get("/metrics", headers=bearer(ADMIN)).status_code == 200


def test_counts_of_all_workers_add_up_and_those_of_the_dead_stay(tmp_path: Path, classifier: Classifier) -> None:
    model = registry.serve(classifier, "tickets")
    served = [(model.name, model.version, model.sha256)]
    one, two = Counts(tmp_path), Counts(tmp_path)
    for counts, status in ((one, "200"), (two, "200"), (two, "422")):
        counts.add(metrics.REQUESTS, "/v1/classify", status)
        counts.observe(metrics.SCORES, 0.55, "tickets")
        counts.add(metrics.IN_PROGRESS)
        counts.set(metrics.GENERATION, 1)
    two.close()
    text = metrics.exposition(tmp_path, one, served).decode()
    assert 'textcls_requests_total{route="/v1/classify",status="200"} 2.0' in text
    assert 'textcls_requests_total{route="/v1/classify",status="422"} 1.0' in text
    assert 'textcls_score_bucket{le="0.6",model="tickets"} 3.0' in text
    assert "textcls_requests_in_progress 1.0" in text
    assert "textcls_workers 1.0" in text
    again = Counts(tmp_path)
    assert len(list(tmp_path.glob("*.counts"))) == 2
    again.add(metrics.REQUESTS, "/v1/classify", "200")
    text = metrics.exposition(tmp_path, one, served).decode()
    assert 'textcls_requests_total{route="/v1/classify",status="200"} 3.0' in text
    assert "textcls_requests_in_progress 1.0" in text
    one.close()
    again.close()


def test_a_worker_that_is_just_starting_or_serves_nothing_spoils_no_metrics(
    tmp_path: Path, classifier: Classifier
) -> None:
    model = registry.serve(classifier, "tickets")
    served = [(model.name, model.version, model.sha256)]
    own, supervisor = Counts(tmp_path), Counts(tmp_path)
    own.set(metrics.GENERATION, 3)
    supervisor.add(metrics.RELOADS, "done")
    # Between the opening of its file and its first number.
    with (tmp_path / "2.counts").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = metrics.exposition(tmp_path, own, served).decode()
        assert metrics.generations(tmp_path, own) == [3]
    assert "textcls_workers 1.0" in text
    assert "textcls_generation 3.0" in text
    assert 'textcls_reloads_total{result="done"} 1.0' in text
    own.close()
    supervisor.close()


def test_a_count_that_cannot_be_named_yet_is_logged_and_shows_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    counts = metrics.Counts(tmp_path)
    counts.set(metrics.GENERATION, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        counts.add(metrics.TOKENS, "a")
    assert "has no room for the name of a new count: No space left on device" in caplog.text
    counts.add(metrics.TOKENS, "b")
    (found,), _ = metrics.read_all(tmp_path, counts)
    assert found[("textcls_tokens", "a")] == found[("textcls_tokens", "b")] == [1.0]
    counts.close()


def test_more_labels_than_there_is_room_for_are_answered_but_not_counted() -> None:
    counts = Counts()
    for i in range(40_000):
        counts.add(metrics.PREDICTIONS, "model", str(i))
    assert len(counts.read()) < 40_000
    assert {n for key, (n,) in counts.read().items() if key[0] == metrics.PREDICTIONS.name} == {1.0}


# Logs, origins, ids


def test_a_request_is_one_line_of_json_without_its_texts_unless_told(model_path: Path) -> None:
    for options, shown in (([], False), (["--log-texts"], True)):
        with command(model_path, "--log-level", "error", "--log-requests", *options) as (process, url):
            with httpx.Client(base_url=url) as client:
                assert post(client, headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
                post(client, headers={"x-request-id": "not an id!"})
                client.get("/my%20secret")
            process.terminate()
            lines = [json.loads(line) for line in process.communicate(timeout=20)[1].splitlines()]
        first, second, third = [line for line in lines if line["message"] == "request"]
        assert (first["request_id"], first["status"], first["texts"]) == ("mine-1", 200, 1)
        assert re.fullmatch(r"[0-9a-f]{12}-\d", second["request_id"])
        assert third["path"] == "other"
        assert first["level"] == "info"
        assert ("charged" in json.dumps(first)) == shown


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


def test_an_error_tells_a_span_nothing_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exported = InMemorySpanExporter()
    monkeypatch.setattr(exporter, "OTLPSpanExporter", lambda: exported)
    tracing = Tracing()
    scope = {"headers": [], "method": "POST"}
    exchange = SimpleNamespace(scope=scope, status=500, answer=None, request_id=b"1", key=None)
    with pytest.raises(RuntimeError), tracing.span(exchange, "/v1/classify"):
        raise RuntimeError("my card was charged twice")
    tracing.close()
    (span,) = exported.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 500
    assert "charged" not in span.to_json()


def test_spans_tell_of_the_request_and_never_of_its_text(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    received: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        with serving(service(classifier, Settings(tracing=True), keys=Keys([f"desk:{KEYS[0]}"]))) as client:
            assert post(client, headers={"traceparent": parent, **bearer(KEYS[0])}).status_code == 200
        collector.shutdown()
    (span,) = trace.ExportTraceServiceRequest.FromString(received[0]).resource_spans[0].scope_spans[0].spans
    assert (span.name, span.trace_id.hex()) == ("POST /v1/classify", parent[3:35])
    facts = {each.key: each.value for each in span.attributes}
    assert facts["http.response.status_code"].int_value == 200
    assert facts["textcls.model"].string_value == "tickets"
    assert facts["textcls.key"].string_value == "desk"
    assert not any(b"charged" in body or KEYS[0].encode() in body for body in received)


# Settings


def test_flags_count_for_more_than_the_environment_and_that_for_more_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "textcls.toml"
    path.write_text(
        '[serve]\nmodels = ["c.onnx", "d.onnx"]\nmax_inputs = 3\nmax_queue = 4\nmax_characters = 5\ncors_origin = ["https://a.example"]\n'
    )
    seen: list[Settings] = []
    named: list[tuple[str, ...]] = []

    def serve(models: tuple[str, ...], settings: Settings, *, ready: object) -> None:
        named.append(models)
        seen.append(settings)

    monkeypatch.setattr("textcls.server.run.serve", serve)
    monkeypatch.setenv("TEXTCLS_SERVE_MAX_QUEUE", "40")
    monkeypatch.setenv("TEXTCLS_SERVE_MAX_CHARACTERS", "50")
    assert CliRunner().invoke(main, ["serve", "--config", str(path)]).exit_code == 0
    monkeypatch.setenv("TEXTCLS_SERVE_MODELS", "a=a.onnx b=b.onnx")
    done = CliRunner().invoke(main, ["serve", "--config", str(path), "--max-characters", "500"])
    assert done.exit_code == 0, done.output
    assert named == [("c.onnx", "d.onnx"), ("a=a.onnx", "b=b.onnx")]
    settings = seen[1]
    assert (settings.max_inputs, settings.max_queue, settings.max_characters) == (3, 40, 500)
    assert settings.cors_origin == ("https://a.example",)
    assert settings.workers == 1


def test_a_setting_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "textcls.toml"
    path.write_text("[serve]\nmax_input = 3\n")
    done = CliRunner().invoke(main, ["serve", "a.onnx", "--config", str(path)])
    assert (done.exit_code, done.stderr) == (
        2,
        f"Error: {path}, [serve]: there is no option 'max_input'; did you mean 'max-inputs'?\n",
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "70000"], "70000 is not in the range 0<=x<=65535."),
        (["--log-texts"], "--log-texts logs texts with the line of each request: set --log-requests as well."),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_done(options: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["serve", "none.onnx", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("wanted", [None, Path("/nowhere")])
def test_without_any_writable_folder_one_sentence_says_what_to_set(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: Path | None
) -> None:
    def refuse(**_: object) -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    options = [] if wanted is None else ["--runtime-dir", str(wanted)]
    done = CliRunner().invoke(main, ["serve", str(model_path), "--port", "0", *options])
    place = wanted or "/dev/shm or the temporary folder"
    assert (done.exit_code, done.stderr) == (
        6,
        f"Error: No file can be made in {place}: name a writable folder with --runtime-dir.\n",
    )


def test_what_a_killed_service_left_is_removed_by_the_next_and_what_a_living_one_uses_is_not(
    model_path: Path, tmp_path: Path
) -> None:
    options: tuple[str | Path, ...] = (model_path, "--runtime-dir", tmp_path)
    with command(*options) as (killed, _):
        killed.kill()
        killed.wait(20)
    with command(*options):
        dead, living = sorted(tmp_path.iterdir(), key=lambda folder: folder.stat().st_mtime)
        for folder in (dead, living):
            os.utime(folder / "owner", (0, 0))
        with command(*options):
            assert not dead.exists()
            assert len(list(living.glob("*.onnx"))) == 1


# Batches of one turn


class CountingClassifier(Classifier):
    """Notes what it is asked, and fails where a text says so."""

    calls: list[Any]

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        self.calls = [*getattr(self, "calls", []), texts]
        if "fail" in texts:
            raise RuntimeError("told to")
        return super().predict(texts, explain=explain, threshold=threshold)


def gathered(classifier: Classifier, *requests: dict[str, Any]) -> list[Any]:
    generation = registry.generation(1, [registry.serve(classifier)])
    bodies = [json.dumps(each).encode() for each in requests]
    read = [answers.read(generation, Settings(), body, b"application/json") for body in bodies]

    async def ask() -> list[Any]:
        gathering = Gathering(10, together=True, connections=lambda: 0)
        asked = [gathering.answer(each, each.microseconds) for each in read]
        return await asyncio.gather(*asked, return_exceptions=True)

    # In a thread of its own: a browser that another test drives has a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, ask()).result()


def test_requests_of_one_turn_are_one_call_and_each_gets_what_it_asked_for(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    assert isinstance(classifier, CountingClassifier)
    answers = gathered(classifier, {"inputs": "one text"}, {"inputs": "my card was"}, {"inputs": "x", "top_k": 1})
    assert len(classifier.calls) == 1
    assert [len(json.loads(answer.body)["results"][0]["labels"]) for answer in answers] == [7, 7, 1]


def test_texts_of_other_length_threshold_or_explanation_go_in_another_call(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    assert isinstance(classifier, CountingClassifier)
    gathered(
        classifier,
        {"inputs": "one"},
        {"inputs": "one", "explain": True},
        {"inputs": "one", "threshold": 0.5},
        {"inputs": "long " * 100},
    )
    assert len(classifier.calls) == 4


def test_a_text_that_cannot_be_answered_spoils_only_its_own_request(model_path: Path) -> None:
    classifier = CountingClassifier.load(model_path)
    good, bad, other = gathered(classifier, {"inputs": "good"}, {"inputs": "fail"}, {"inputs": "also"})
    assert isinstance(bad, RuntimeError)
    assert json.loads(good.body)["results"]
    assert json.loads(other.body)["results"]


# Explanations


class WatchedClassifier(Classifier):
    """Notes how many texts each call explains, and how many explanations of earlier calls are still held."""

    asked: list[int]
    held: list[int]

    def predict(self, texts: Any, *, explain: bool = False, threshold: float | None = None) -> Any:
        earlier: weakref.WeakSet[Any] = getattr(self, "_earlier", weakref.WeakSet())
        self.asked = [*getattr(self, "asked", []), len(texts)]
        self.held = [*getattr(self, "held", []), len(earlier)]
        found = super().predict(texts, explain=explain, threshold=threshold)
        self._earlier = weakref.WeakSet([*earlier, *(each.explanation for each in found)])
        return found


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/classify", {"explain": True, "top_k": 1}),
        ("/predict", {"raw_scores": True}),
        ("/models/tickets", {"parameters": {"function_to_apply": "none"}}),
        ("/v1/models/tickets:explain", {}),
        ("/v2/models/tickets/infer", {"outputs": [{"name": "explanation"}, {"name": "logits"}]}),
    ],
)
def test_explanations_of_many_texts_are_made_and_written_some_at_a_time(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    texts = [f"{'word ' * 4}{i}" for i in range(10)]
    forms: dict[str, dict[str, Any]] = {
        "/predict": {"inputs": [[text] for text in texts]},
        "/v1/models/tickets:explain": {"instances": texts},
        "/v2/models/tickets/infer": {
            "inputs": [{"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}]
        },
    }
    content = json.dumps({**forms.get(path, {"inputs": texts}), **body}).encode()
    route, names = routes.table(Settings()).find("POST", path)
    assert route.asks is not None
    form = route.asks([], **names)

    def ask() -> tuple[WatchedClassifier, Any]:
        classifier = WatchedClassifier.load(model_path)
        assert isinstance(classifier, WatchedClassifier)
        generation = registry.generation(1, [registry.serve(classifier, "tickets")])
        answer = answers.complete(form(generation, Settings(), content, b"application/json"))
        assert len(answer.outcomes) == 10
        return classifier, json.loads(answer.body)

    at_once, expected = ask()
    assert at_once.asked == [10]
    monkeypatch.setattr(cost, "CALL_BYTES", at_once.cost.call_bytes(3, 21))  # texts, characters
    in_slices, answer = ask()
    assert in_slices.asked == [3, 3, 3, 1]
    assert max(in_slices.held) <= 3
    for a, b in zip(leaves(answer), leaves(expected), strict=True):
        assert a == (pytest.approx(b, abs=1e-5) if isinstance(b, float) else b)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


# Processes


class Load:
    """Clients that ask without pause, each on a connection of its own that is kept as long as the server likes."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self.url, self.stop = httpx.URL(url), threading.Event()
        self.statuses: list[int] = []
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(20)

    def _ask(self) -> None:
        with httpx.Client(base_url=self.url, timeout=20) as client:
            while not self.stop.is_set():
                try:
                    self.statuses.append(post(client).status_code)
                except httpx.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}")

    def more(self, count: int) -> None:
        """Wait until so many more are answered."""
        goal = len(self.statuses) + count
        until(lambda: len(self.statuses) >= goal)


def workers(process: subprocess.Popen[str]) -> list[int]:
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    kind = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found]
    return [int(pid) for pid, line in zip(found, kind, strict=True) if b"spawn_main" in line]


def test_workers_that_are_replaced_one_by_one_lose_no_request(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, url), Load(url) as load:
        load.more(50)
        before = set(workers(process))
        process.send_signal(signal.SIGHUP)
        until(lambda: len(workers(process)) == 2 and not before & set(workers(process)))
        load.more(50)
        assert load.failures == []
        assert set(load.statuses) == {200}


def test_a_worker_that_is_killed_is_replaced_and_only_its_own_requests_fail(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, url):
        with Load(url) as load:
            load.more(50)
            before = workers(process)
            os.kill(before[0], signal.SIGKILL)
            until(lambda: len(workers(process)) == 2 and before[0] not in workers(process))
            load.more(50)
        assert len(load.failures) <= 4  # one for each client at most
        assert set(load.statuses) == {200}
        with httpx.Client(base_url=url) as client:
            found = until(lambda: (n := numbers(client))["textcls_workers"] == 2 and n)
        # What the dead worker had answered is still counted.
        assert found['textcls_requests_total{route="/v1/classify",status="200"}'] >= len(load.statuses)


def test_a_signal_exchanges_the_models_of_all_workers(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "tickets.onnx"
    shutil.copy(model_path, path)
    with command(tmp_path, "--workers", "2") as (process, url), Load(url) as load, httpx.Client(base_url=url) as client:
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


def test_while_it_drains_it_serves_says_so_and_then_ends(model_path: Path) -> None:
    with command(model_path, "--drain-seconds", "1") as (process, url), httpx.Client(base_url=url) as client:
        assert client.get("/readyz").status_code == 200
        process.terminate()
        until(lambda: client.get("/readyz").status_code == 503)
        answer = post(client)
        assert (answer.status_code, answer.headers["connection"]) == (200, "close")
        assert process.wait(20) == 0


def test_workers_whose_supervisor_was_killed_end_as_well(model_path: Path) -> None:
    with command(model_path, "--workers", "2") as (process, _):
        pids = workers(process)
        process.kill()
        process.wait(20)
        assert len(pids) == 2
        assert until(lambda: not any(map(alive, pids)))


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not yet waited for has no command line."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_one_worker_reloads_at_a_signal_too(model_path: Path) -> None:
    with command(model_path) as (process, url), httpx.Client(base_url=url) as client:
        process.send_signal(signal.SIGUSR1)
        assert until(lambda: numbers(client)["textcls_generation"] == 2)
        assert numbers(client)['textcls_reloads_total{result="done"}'] == 1


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_service_whose_shared_folder_is_removed_says_so_and_ends(
    model_path: Path, tmp_path: Path, count: str
) -> None:
    with command(model_path, "--workers", count, "--runtime-dir", tmp_path) as (process, _):
        shutil.rmtree(next(tmp_path.iterdir()))
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 6
    assert "which the workers share, cannot be used: No such file or directory; start the service anew" in said
    assert "Traceback" not in said


class LoadingWorker(Worker):
    """Loads its models for longer than any test."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        time.sleep(1000)


def test_a_worker_that_still_loads_its_models_is_not_taken_for_one_that_hangs(shelf: Shelf) -> None:
    worker = LoadingWorker(shelf, Settings(), uvicorn.Config(""), [])
    worker.start()
    assert [worker.is_alive(timeout=0) for _ in range(3)] == [True] * 3
    worker.kill()
    worker.join()
    assert not worker.is_alive(timeout=0)


def test_a_supervisor_that_fails_ends_its_workers_first(model_path: Path) -> None:
    code = f"""
from textcls.server.supervisor import Supervisor
def fail(self):
    raise RuntimeError("told to")
Supervisor.handle_usr1 = fail
{MAIN}
"""
    with command(model_path, "--workers", "2", code=code) as (process, _):
        pids = workers(process)
        process.send_signal(signal.SIGUSR1)
        assert "RuntimeError: told to" in process.communicate(timeout=20)[1]
    assert process.returncode == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def ended(model_path: Path, *options: str, code: str) -> tuple[int, str]:
    """The exit code of a service that must end by itself, and what it said."""
    line = [sys.executable, "-c", code, "serve", str(model_path), "--port", "0", *options]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_a_service_whose_workers_cannot_start_fails(model_path: Path) -> None:
    code = f"""
from textcls.server.supervisor import Supervisor
start = Supervisor.init_processes
def without_models(self):
    for path in self._shelf.folder.glob("*.onnx"):
        path.unlink()
    start(self)
Supervisor.init_processes = without_models
{MAIN}
"""
    status, said = ended(model_path, "--workers", "2", code=code)
    assert status == 6
    assert "The worker cannot start: " in said
    assert said.endswith("Error: A worker could not start, and so would none that replaces it: its log says why.\n")


@pytest.mark.parametrize("count", ["1", "2"])
def test_what_every_worker_would_fail_of_is_one_sentence(model_path: Path, count: str) -> None:
    code = f"import sys; sys.modules['opentelemetry.exporter.otlp.proto.http.trace_exporter'] = None; {MAIN}"
    status, said = ended(model_path, "--workers", count, "--tracing", code=code)
    assert (status, said.count("\n")) == (5, 1)
    assert said.startswith("Error: --tracing needs the package 'opentelemetry', ")
