"""The page of `textcls label` over real sockets: who gets an answer, and who does not."""

import http.client
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.labelling.files import Open
from tests.threaded import threaded
from textcls.display.html import label_page
from textcls.errors import SurroundingsError
from textcls.labelling.http import MOST_BYTES, MOST_CONNECTIONS, Server
from textcls.labelling.session import Session


@pytest.fixture
def server(tmp_path: Path, opened: Open) -> Iterator[Server]:
    """A server of ten texts."""
    session = Session([f"text {i}" for i in range(10)], ["a", "b"], opened(tmp_path / "labels.jsonl", several=False))
    with threaded(Server(session, label_page.files(), label_page.POLICY)) as found:
        yield found


def ask(server: Server, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any, Any]:
    """The status, the headers and the content of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if method == "POST":
        given = {"x-textcls-token": server.token, **given}
    try:
        connection.request(method, path, data, given)
        reply = connection.getresponse()
        content = reply.read()
        is_json = reply.headers["content-type"] == "application/json"
        return reply.status, reply.headers, json.loads(content) if is_json else content.decode()
    finally:
        connection.close()


def test_connections_for_which_no_thread_could_be_started_are_not_counted_for_ever(server: Server) -> None:
    with pytest.MonkeyPatch.context() as patch:

        def fail(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fail)
        for _ in range(MOST_CONNECTIONS + 1):
            with pytest.raises(RuntimeError):
                server.process_request(None, None)
    assert ask(server, "GET", "/")[0] == 200


def test_a_name_of_half_a_character_is_refused(server: Server) -> None:
    _, _, found = ask(server, "POST", "/api/next", {"who": "me"})
    body = {"who": "me", "row": found["text"]["row"], "labels": ["a"], "by": "\ud83d"}
    status, _, found = ask(server, "POST", "/api/answer", body)
    assert (status, found["error"]) == (422, "by holds half a character; write it without.")


def test_an_answer_is_in_the_file_when_the_reply_comes(server: Server) -> None:
    status, _, found = ask(server, "POST", "/api/next", {"who": "me"})
    assert status == 200
    row = found["text"]["row"]
    status, _, found = ask(server, "POST", "/api/answer", {"who": "me", "row": row, "labels": ["a"], "by": "Ann"})
    line = json.loads(server.session.file.path.read_text(encoding="utf-8"))
    assert (line["row"], line["label"], line["by"]) == (row + 1, "a", "Ann")
    assert found["state"]["answers"] == 1
    assert found["text"]["row"] != row


def test_without_the_token_nothing_is_told(server: Server) -> None:
    for wrong in ("", "x" * len(server.token), "\xff"):
        status, _, found = ask(server, "POST", "/api/next", {"who": "me"}, x_textcls_token=wrong)
        assert status == 403
        assert "whole address" in found["error"]
    assert server.token not in ask(server, "GET", "/")[2]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_name_for_this_machine_gets_nothing(server: Server, host: str) -> None:
    assert ask(server, "POST", "/api/next", {"who": "me"}, host=host)[0] == 421
    assert ask(server, "GET", "/", host=host)[0] == 421


def test_it_listens_on_this_machine_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#\S{20,}", server.url)


def test_no_reply_allows_another_origin_and_all_have_the_policy(server: Server) -> None:
    replies = [ask(server, "GET", path) for path in ("/", "/page/label.mjs", "/page/none", "/../secret", "/page/")]
    replies.append(ask(server, "POST", "/api/none", {}))
    for status, headers, _ in replies:
        assert status in (200, 404)
        assert "access-control-allow-origin" not in headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert [status for status, _, _ in replies] == [200, 200, 404, 404, 404, 404]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        ({"row": 1, "labels": ["a"]}, "who must be"),
        ({"who": "me", "row": "1", "labels": ["a"]}, "row must be"),
        ({"who": "me", "row": True, "labels": ["a"]}, "row must be"),
        ({"who": "me", "row": 1, "labels": "a"}, "labels must be"),
        ({"who": "me", "row": 10, "labels": ["a"]}, "no text 10"),
        ({"who": "me", "row": -1, "labels": ["a"]}, "no text -1"),
        ({"who": "me", "row": 1, "labels": [""]}, "is empty"),
        ({"who": "x" * 200, "row": 1, "labels": ["a"]}, "who must be"),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(server: Server, body: object, why: str) -> None:
    status, _, found = ask(server, "POST", "/api/answer", body)
    assert status in (404, 422)
    assert why in found["error"]
    assert server.session.file.answers == []


def test_a_body_without_bounds_is_not_read(server: Server) -> None:
    assert ask(server, "POST", "/api/next", b"x", content_length=str(MOST_BYTES + 1))[0] == 413
    assert ask(server, "POST", "/api/next", b"x", content_length="-1")[0] == 413


def test_a_port_that_is_taken_is_told(server: Server) -> None:
    with pytest.raises(SurroundingsError, match=f"Port {server.port} cannot be listened on"):
        Server(server.session, {}, "", server.port)


def test_a_defect_is_told_in_the_terminal_and_a_browser_that_has_gone_is_not(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as gone:
        gone.sendall(b"POST /api/next HTTP/1.1\r\ncontent-length: 5\r\n\r\n")
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def broken(*_: object) -> None:
        raise ValueError("a defect of the session")

    monkeypatch.setattr(Session, "next", broken)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "POST", "/api/next", {"who": "me"})
    told = capfd.readouterr().err
    assert told.count("Traceback") == 1
    assert "a defect of the session" in told


def test_a_length_of_thousands_of_digits_is_refused_as_any_other(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(server, "POST", "/api/next", b"x", content_length="9" * 5000)[0] == 413
    assert capfd.readouterr().err == ""


def test_connections_beyond_the_most_are_closed_and_leave_no_thread(server: Server) -> None:
    before = threading.active_count()
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(MOST_CONNECTIONS + 50)]
    try:
        for one in held[MOST_CONNECTIONS:]:
            one.settimeout(30)
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
        assert threading.active_count() <= before + MOST_CONNECTIONS
    finally:
        for one in held:
            one.close()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        time.sleep(0.05)
    assert ask(server, "GET", "/")[0] == 200
