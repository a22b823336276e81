"""A server that speaks chat completions as OpenAI's API has them, and answers by words; or badly, as it is told.

It has two models: `small`, and `contrary`, which answers texts of billing with the second label.
"""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.threaded import threaded

# What servers tell of tokens that is none.
_USAGES: dict[str, tuple[Any, Any, Any]] = {
    "uncounted": (None, None, None),
    "miscounted": (-50, "7", 10**12),
    "half counted": (50.5, True, None),
}
# What models say that is not what they were asked for, but may be understood.
_SAID = {
    "fenced": '```\n{"label": "returns"}\n```',
    "thought": '<think>Is it {"label": "billing"}?</think>\nSure: {"label": " Returns "}',
    "strange": "It is about a parcel, sk-secret-of-mine.",
}


class Server(ThreadingHTTPServer):
    """Answers with the first label whose name stands in the text, else the first.

    Of several answers at once every fifth has the second label.

    Attributes:
        asked: how often each text was asked about.
        requests: how many there were.
        keys: that were presented.
        at_once: most requests that were under way at the same time.
    """

    daemon_threads = True

    def __init__(
        self, *, bad: str = "", fails: int = 0, seconds: float = 0.0, logprobs: bool = True, samples: bool = True
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bad, self.fails, self.seconds, self.logprobs, self.samples = bad, fails, seconds, logprobs, samples
        # A text that is refused, "*" for all of them, and one at which the server breaks.
        self.refuses = self.breaks = ""
        self.asked: Counter[str] = Counter()
        self.requests = 0
        self.keys: set[str] = set()
        self.under_way = self.at_once = 0
        self.guard = threading.Lock()

    def handle_error(self, *_: Any) -> None:
        """Say nothing: who asked has gone."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.guard:
            server.under_way += 1
            server.requests += 1
            server.at_once = max(server.at_once, server.under_way)
            server.keys.add(self.headers["authorization"])
            fails, server.fails = server.fails > 0, server.fails - 1
        time.sleep(server.seconds)
        with server.guard:
            server.under_way -= 1
        if fails:
            self._send(429, b"{}", {"retry-after": "0.01"})
        elif (not server.logprobs and asked.get("logprobs")) or (not server.samples and "n" in asked):
            self._send(400, b'{"error": {"message": "that is not supported"}}')
        elif asked["model"] not in ("small", "contrary"):
            self._send(404, b"{}")
        else:
            text = asked["messages"][-1]["content"]
            if server.refuses in (text, "*") or text == server.breaks:
                self._send(501 if text == server.breaks else 400, b'{"error": {"message": "no sk-secret-of-mine"}}')
                return
            with server.guard:
                server.asked[text] += 1
                first = server.asked[text] - 1 if asked.get("temperature") else 0
            self._send(200, self._bad(text) or json.dumps(_completion(text, asked, server.bad, first)).encode())

    def _bad(self, text: str) -> bytes:
        kinds = {
            "html": b"<html>Sign in</html>",
            "other": b'{"choices": [{"message": "billing", "logprobs": 3}], "usage": []}',
            "large": b'{"choices": "' + b"x" * 5_000_000 + b'"}',
            "empty": b'{"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": []}',
        }
        return kinds.get(self.server.bad, b"")

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def _completion(text: str, asked: dict[str, Any], bad: str, first: int) -> dict[str, Any]:
    count = asked.get("n", 1)
    choices = [_choice(text, asked, number) for number in range(first, first + count)]
    if bad in _SAID:
        choices = [each | {"message": each["message"] | {"content": _SAID[bad]}, "logprobs": None} for each in choices]
    if bad == "thinking":
        choices = [each | {"finish_reason": "length"} for each in choices]
    words = sum(len(message["content"].split()) for message in asked["messages"])
    written = 6 * count
    usage: dict[str, Any] = {"prompt_tokens": words, "completion_tokens": written, "total_tokens": words + written}
    if bad in _USAGES:
        usage = dict(zip(usage, _USAGES[bad], strict=True))
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": choices, "usage": usage}


def _choice(text: str, asked: dict[str, Any], number: int) -> dict[str, Any]:
    """Return an answer, the `number`th to its text."""
    properties = asked["response_format"]["json_schema"]["schema"]["properties"]
    content = _of_one(text, asked, number, properties) if "label" in properties else _of_several(text, properties)
    said = {"role": "assistant", "content": "".join(one["token"] for one in content), "refusal": None}
    choice: dict[str, Any] = {"index": number, "finish_reason": "stop", "message": said, "logprobs": None}
    if asked.get("logprobs"):
        choice["logprobs"] = {"content": content, "refusal": None}
    return choice


def _tokens(*texts: str) -> list[dict[str, Any]]:
    return [{"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": []} for text in texts]


def _alternatives(*shares: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"token": text, "logprob": math.log(share), "bytes": None} for text, share in shares]


def _of_several(text: str, properties: dict[str, Any]) -> list[dict[str, Any]]:
    """Say of each label whether its name stands in the text, each time sure to nine tenths."""
    content = _tokens("{")
    for number, name in enumerate(properties):
        truths = ("true", "false") if name in text else ("false", "true")
        content += _tokens(f'{", " if number else ""}"{name}":', f" {truths[0]}")
        content[-1]["logprob"] = math.log(0.9)
        content[-1]["top_logprobs"] = _alternatives((f" {truths[0]}", 0.9), (f" {truths[1]}", 0.1))
    return content + _tokens("}")


def _of_one(text: str, asked: dict[str, Any], number: int, properties: dict[str, Any]) -> list[dict[str, Any]]:
    labels = properties["label"]["enum"]
    label = next((name for name in labels if name in text), labels[0])
    if number % 5 == 4 or (asked["model"] == "contrary" and label == "billing"):
        label = labels[1]
    if "another" in text:
        label = "none of these"
    content = _tokens('{"', "label", '":"', label[:2], label[2:], '"}')
    # At the first letters of the name it was sure to three quarters, and else meant another label.
    content[3]["logprob"] = math.log(0.75)
    other = next(name for name in labels if name[:2] != label[:2])
    content[3]["top_logprobs"] = _alternatives((label[:2], 0.75), (other[:2], 0.25))
    return content


@contextmanager
def running(**how: Any) -> Iterator[Server]:
    with threaded(Server(**how)) as server:
        yield server
