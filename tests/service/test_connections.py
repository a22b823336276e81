"""What a connection may send and hold: bounds on heads, trailers, pipelined requests and answers that nobody reads."""

import json
import logging
import random
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest
from uvicorn.protocols.http import httptools_impl

from tests.service.clients import BODY, KEYS, LONG, bearer, numbers, post
from tests.service.processes import until
from tests.service.server import SlowClassifier, service, serving
from tests.service.sockets import connect, everything
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.http.protocol import MAX_HEAD_BYTES, MAX_HEADERS, MAX_URL_BYTES
from textcls.server.monitoring import metrics
from textcls.server.settings import Settings

GET = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
LAST = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
POST = b"POST /v1/classify HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
WHOLE = b"%bcontent-length: %d\r\n\r\n%b" % (POST, len(BODY), BODY)
CHUNKED = b"%btransfer-encoding: chunked\r\n\r\n5\r\n%b\r\n%x\r\n%b\r\n0\r\n" % (
    POST,
    BODY[:5],
    len(BODY) - 5,
    BODY[5:],
)


@pytest.fixture
def client(classifier: Classifier) -> Iterator[httpx.Client]:
    """Of a service with a key."""
    with serving(service(classifier, keys=Keys(KEYS))) as client:
        yield client


@pytest.fixture
def open_client(classifier: Classifier) -> Iterator[httpx.Client]:
    """Of a service without keys."""
    with serving(service(classifier)) as client:
        yield client


def pour(connection: socket.socket, piece: bytes, seconds: float) -> bool:
    """Send a piece again and again; say whether it is still taken then. One that hangs up takes nothing."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            connection.sendall(piece)
    except (TimeoutError, ConnectionError):
        return False
    return True


def refused(client: httpx.Client, sent: bytes) -> tuple[int, str]:
    """Send what is refused; return the status and the message."""
    with connect(client) as connection:
        connection.sendall(sent)
        answer = everything(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    return int(answer[9:12]), json.loads(body)["error"]["message"]


def statuses(answer: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d+)", answer)


# Heads


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"GET /" + b"a" * MAX_URL_BYTES, 414, "The URL has more than 8,192 bytes"),
        (b"GET /" + b"a" * MAX_URL_BYTES + b" HTTP/1.1\r\n\r\n", 414, "The URL has more than 8,192 bytes"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * MAX_HEAD_BYTES, 431, "The head has more than 16,384 bytes"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n", 431, "The head has more than 16,384 bytes"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (MAX_HEADERS + 2), 431, "There are more than 100 headers"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (MAX_HEADERS + 1) + b"\r\n", 431, "There are more than 100 headers"),
    ],
    ids=["URL goes on", "URL", "head goes on", "head", "headers go on", "headers"],
)
def test_a_head_beyond_a_bound_is_refused_in_the_form_of_all_errors(
    client: httpx.Client, sent: bytes, status: int, said: str
) -> None:
    found, message = refused(client, sent)
    assert found == status
    assert message.startswith(said)
    assert numbers(client, **bearer(KEYS[0]))[f'textcls_connections_closed_total{{reason="{status}"}}'] == 1


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", 400, "This is not a valid HTTP request; TLS is not spoken here"),
        (b"CONNECT /v1/classify HTTP/1.1\r\nhost: a\r\n\r\n", 400, "This is not a proxy"),
        (b"GET /livez HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n", 400, "There are two Host headers"),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400, "The Host header is missing"),
        (
            b"POST /v1/classify HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501,
            "Of transfer codings chunked alone is understood",
        ),
    ],
    ids=["TLS", "a tunnel", "two hosts", "no host", "a coding"],
)
def test_what_could_be_taken_in_two_ways_is_refused_at_once(
    client: httpx.Client, sent: bytes, status: int, said: str
) -> None:
    found, message = refused(client, sent)
    assert (found, message[: len(said)]) == (status, said)


def test_a_head_at_the_bounds_is_served(client: httpx.Client) -> None:
    with connect(client) as connection:
        start = b"GET /livez HTTP/1.1\r\nhost: a\r\n" + b"a: b\r\n" * (MAX_HEADERS - 2) + b"c: "
        connection.sendall(start.ljust(MAX_HEAD_BYTES - 4, b"d") + b"\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("piece", [b"a: b\r\n", b"a"], ids=["headers", "one value"])
def test_a_head_without_end_is_not_taken(client: httpx.Client, piece: bytes) -> None:
    with connect(client) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nx: y")
        assert not pour(connection, piece * 10_000, seconds=3)


# Bodies and trailers


def test_a_key_in_a_trailer_opens_nothing(client: httpx.Client) -> None:
    with connect(client) as connection:
        connection.sendall(CHUNKED + f"authorization: Bearer {KEYS[0]}\r\n\r\n".encode() + LAST)
        assert statuses(everything(connection)) == [b"401", b"200"]


def test_trailers_are_dropped_and_the_request_is_served(open_client: httpx.Client) -> None:
    with connect(open_client) as connection:
        connection.sendall(CHUNKED + b"x-request-id: of-the-trailer\r\n\r\n" + LAST)
        answer = everything(connection)
        assert statuses(answer) == [b"200", b"200"]
        assert b"of-the-trailer" not in answer


@pytest.mark.parametrize("piece", [b"a: b\r\n", b"a"], ids=["trailers", "one value"])
def test_trailers_without_end_are_not_taken(open_client: httpx.Client, piece: bytes) -> None:
    with connect(open_client) as connection:
        connection.sendall(CHUNKED + b"x: y")
        assert not pour(connection, piece * 10_000, seconds=3)
    with connect(open_client) as connection:
        connection.sendall(CHUNKED + b"x: " + b"a" * 2 * MAX_HEAD_BYTES)
        answer = everything(connection)
        assert answer.startswith(b"HTTP/1.1 431")
        assert b"The trailers have more than 16,384 bytes" in answer


def test_a_body_is_not_taken_before_the_key_is_known(classifier: Classifier) -> None:
    # As long as the gate has not looked at the key, it asks for no body.
    held = service(classifier, keys=Keys(KEYS))
    with serving(held) as client, connect(client) as connection:
        connection.sendall(POST + b"content-length: 1900000\r\n\r\n" + b" " * 1_000_000)
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")
        connection.sendall(b" " * 900_000 + LAST)
        assert statuses(everything(connection)) == [b"200"]


def test_after_an_answer_that_came_before_the_body_the_connection_is_kept_no_longer_than_others(
    classifier: Classifier,
) -> None:
    held = service(classifier, Settings(keep_alive_seconds=1), keys=Keys(KEYS))
    with serving(held) as client, connect(client) as connection:
        connection.sendall(POST + b"content-length: 10\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 401")
        connection.sendall(b" " * 10)
        assert connection.recv(1000) == b""


# Requests in a row


def test_requests_in_a_row_are_answered_one_after_the_other_in_their_order(open_client: httpx.Client) -> None:
    with connect(open_client) as connection, ThreadPoolExecutor() as pool:
        answer = pool.submit(everything, connection)
        connection.sendall((GET + WHOLE) * 500 + CHUNKED + b"\r\n" + LAST)
        found = answer.result()
    assert statuses(found) == [b"200"] * 1002
    order = re.findall(rb'"status":"\w+"|"label":', found)
    assert order[0] == b'"status":"live"'
    assert order[-1] == b'"status":"ready"'


def test_requests_in_a_row_whose_answers_are_not_read_are_not_taken(client: httpx.Client) -> None:
    with connect(client) as connection, connect(client) as other:
        for each in (connection, other):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.settimeout(1)
            assert not pour(each, GET * 1000, seconds=5)
        # One at a time: what follows a request has not become a request.
        assert numbers(client, **bearer(KEYS[0]))["textcls_requests_in_progress"] <= 3
        assert client.get("/livez").status_code == 200


def test_what_follows_a_request_that_takes_long_does_not_make_it_late(slow: SlowClassifier) -> None:
    head = b"%bcontent-length: %d\r\n\r\n" % (POST, len(LONG))
    with serving(service(slow, Settings(receive_seconds=1))) as client, connect(client) as connection:
        connection.sendall(head + LONG + LAST[:20])
        time.sleep(3)
        connection.sendall(LAST[20:])
        SlowClassifier.gate.set()
        assert statuses(everything(connection)) == [b"200", b"200"]


def test_however_a_stream_of_requests_is_cut_into_pieces_its_answers_are_the_same(open_client: httpx.Client) -> None:
    long = b'{"inputs": "a text"}'.ljust(100_000)
    many = b"".join(b"1\r\n%c\r\n" % each for each in BODY) + b"0\r\nx: y\r\n\r\n"
    lines = b"\r\n" * 300 + BODY
    stream = b"".join(
        [
            WHOLE,
            b"\r\n",
            CHUNKED + b"x: y\r\n\r\n",
            GET,
            POST + b"content-length: %d\r\n\r\n" % len(long) + long,
            POST + b"transfer-encoding: chunked\r\n\r\n" + many,
            b"%btransfer-encoding: chunked\r\n\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (POST, len(lines), lines),
            b"POST /livez HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nUpgrade: h2c\r\ncontent-length: 3\r\n\r\nabc",
            LAST,
        ]
    )
    dice = random.Random(0)
    for longest in (1, 7, 100, 5_000, 200_000):
        with connect(open_client) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            at = 0
            while at < len(stream):
                # The long body at once: byte by byte it would take seconds.
                size = 90_000 if stream[at : at + 90_000] == b" " * 90_000 else dice.randint(1, longest)
                connection.sendall(stream[at : at + size])
                at += size
            found = statuses(everything(connection))
        assert found == [b"200"] * 6 + [b"405", b"200"], longest


def test_an_empty_line_does_not_keep_a_connection_open(classifier: Classifier) -> None:
    with serving(service(classifier, Settings(receive_seconds=1))) as client, connect(client) as connection:
        connection.sendall(GET)
        assert connection.recv(1000)
        connection.sendall(b"\r\n")
        assert b"HTTP/1.1 408" in everything(connection)


# Other protocols


def test_what_is_no_http_is_answered_400_in_the_form_of_all_errors(classifier: Classifier) -> None:
    with serving(service(classifier)) as client, connect(client) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01 not http\r\n\r\n")
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "bad_request"


@pytest.mark.parametrize(
    "upgrade",
    [
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
        b"UPGRADE: websocket\r\nconnection: upgrade\r\n",
    ],
)
def test_another_protocol_that_is_offered_is_ignored_without_a_word(
    open_client: httpx.Client, caplog: pytest.LogCaptureFixture, upgrade: bytes
) -> None:
    request = WHOLE.replace(b"host: localhost\r\n", b"host: localhost\r\n" + upgrade)
    chunked = CHUNKED.replace(b"host: localhost\r\n", b"host: localhost\r\n" + upgrade) + b"\r\n"
    with caplog.at_level(logging.WARNING), connect(open_client) as connection:
        connection.sendall(request + chunked + LAST)
        assert statuses(everything(connection)) == [b"200"] * 3
    assert caplog.text == ""


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01 not http\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab",
        POST + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"content-length: +1\r\n\r\na",
        POST + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_refused_without_a_word_in_the_log(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with caplog.at_level(logging.WARNING):
        assert refused(client, sent)[0] in (400, 401)
    assert caplog.text == ""


def test_a_caller_who_goes_on_sending_still_gets_to_see_why_it_was_hung_up_on(client: httpx.Client) -> None:
    for _ in range(20):
        with connect(client) as connection:
            connection.sendall(b"GET /" + b"a" * 3_000_000)
            assert everything(connection).startswith(b"HTTP/1.1 414")


@pytest.mark.skipif(not hasattr(socket, "TCP_NOTSENT_LOWAT"), reason="the kernel is told by an option of Linux")
def test_for_who_does_not_read_no_more_is_done_than_a_few_answers_take(client: httpx.Client) -> None:
    def answered() -> float:
        return numbers(client, **bearer(KEYS[0])).get('textcls_requests_total{route="/livez",status="200"}', 0)

    with connect(client) as connection:
        connection.settimeout(1)
        before = -1.0
        while before < (now := answered()) < 5_000:
            before = now
            pour(connection, GET * 100, seconds=1)
    # 25,000 where the kernel holds 4 MB of answers.
    assert now < 5_000


# How many there may be


def test_with_too_many_connections_the_longest_idle_one_makes_room(classifier: Classifier) -> None:
    with serving(service(classifier, Settings(max_connections=3))) as client, ExitStack() as stack:
        first, second, third = (stack.enter_context(connect(client)) for _ in range(3))
        for each in (second, first, third):
            each.sendall(GET)
            assert each.recv(1000).startswith(b"HTTP/1.1 200")
        with connect(client) as fourth:
            fourth.sendall(GET)
            assert fourth.recv(1000).startswith(b"HTTP/1.1 200")
            assert second.recv(1000) == b""
            for each in (first, third, fourth):
                each.sendall(GET)
                assert each.recv(1000).startswith(b"HTTP/1.1 200")


def test_a_thousand_idle_connections_keep_nobody_from_being_answered(classifier: Classifier) -> None:
    with serving(service(classifier)) as client, ExitStack() as stack:
        for i in range(1000):
            connection = stack.enter_context(connect(client))
            connection.sendall(b"GET /livez HT" if i % 2 else b"")
        assert httpx.get(f"{client.base_url}/livez").status_code == 200
        assert post(client).status_code == 200


def test_a_connection_beyond_the_bound_is_told_so_if_none_is_idle(slow: SlowClassifier) -> None:
    request = b"%bcontent-length: %d\r\n\r\n%b" % (POST, len(LONG), LONG)
    held = service(slow, Settings(max_connections=2))
    with serving(held) as client:
        with connect(client) as first, connect(client) as second, ExitStack() as stack:
            for each in (first, second):
                each.sendall(request)
            until(lambda: metrics.read_all(held.store.folder)[0][0][(metrics.IN_PROGRESS.name,)] == [2])
            answer = everything(stack.enter_context(connect(client)))
            assert answer.startswith(b"HTTP/1.1 429")
            assert b"retry-after: 1" in answer
            assert b"max_connections" in answer
            SlowClassifier.gate.set()
            assert first.recv(1000).startswith(b"HTTP/1.1 200")
        assert post(client).status_code == 200


def test_uvicorn_is_left_as_it_is() -> None:
    assert httptools_impl.RequestResponseCycle.__module__ == httptools_impl.__name__
    assert httptools_impl.HttpToolsProtocol.__module__ == httptools_impl.__name__


def test_a_caller_that_waits_to_be_told_sends_its_body_then(open_client: httpx.Client) -> None:
    with connect(open_client) as connection:
        head = b"%bexpect: 100-continue\r\nconnection: close\r\n" % POST
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(BODY))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BODY)
        assert everything(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_answer_to_head_is_sent_at_once_and_without_a_body(client: httpx.Client) -> None:
    with connect(client) as connection:
        for _ in range(2):
            connection.sendall(b"HEAD /livez HTTP/1.1\r\nhost: localhost\r\n\r\n")
            said = connection.recv(4000)
            assert said.startswith(b"HTTP/1.1 ")
            assert said.endswith(b"\r\n\r\n")
