"""A server that speaks chat completions as OpenAI's API has them, and answers by words; or badly, as it is told."""

import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What servers tell of tokens that is none.
_USAGES: dict[str, tuple[Any, Any, Any]] = {
    "uncounted": (None, None, None),
    "miscounted": (-50, "7", 10**12),
    "half counted": (50.5, True, None),
}


class Server(ThreadingHTTPServer):
    """Answers with the first label whose name stands in the text, else the first.

    Attributes:
        asked: how often each text was asked about.
        keys: that were presented.
        at_once: most requests that were under way at the same time.
    """

    daemon_threads = True

    def __init__(self, *, bad: str = "", fails: int = 0, seconds: float = 0.0, logprobs: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bad, self.fails, self.seconds, self.logprobs = bad, fails, seconds, logprobs
        # A text that is refused, and one at which the server breaks.
        self.refuses = self.breaks = ""
        self.asked: Counter[str] = Counter()
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

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.guard:
            server.under_way += 1
            server.at_once = max(server.at_once, server.under_way)
            server.keys.add(self.headers["authorization"])
            fails, server.fails = server.fails > 0, server.fails - 1
        time.sleep(server.seconds)
        with server.guard:
            server.under_way -= 1
        if fails:
            self._send(429, b"{}", {"retry-after": "0.01"})
        elif not server.logprobs and asked.get("logprobs"):
            self._send(400, b'{"error": {"message": "logprobs are not supported"}}')
        elif asked["model"] != "small":
            self._send(404, b"{}")
        else:
            text = asked["messages"][-1]["content"]
            if text in (server.refuses, server.breaks):
                self._send(400 if text == server.refuses else 501, b"{}")
                return
            with server.guard:
                server.asked[text] += 1
            self._send(200, self._bad(text) or json.dumps(_completion(text, asked, server.bad)).encode())

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


def _completion(text: str, asked: dict[str, Any], bad: str) -> dict[str, Any]:
    labels = asked["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
    label = next((name for name in labels if name in text), labels[0])
    if "another" in text:
        label = "none of these"
    tokens = ['{"', "label", '":"', label[:2], label[2:], '"}']
    content: list[dict[str, Any]] = [{"token": t, "logprob": 0.0, "bytes": None, "top_logprobs": []} for t in tokens]
    # At the first letters of the name it was sure to three quarters, and else meant another label.
    content[3]["logprob"] = math.log(0.75)
    other = next(name for name in labels if name[:2] != label[:2])
    content[3]["top_logprobs"] = [
        {"token": beginning, "logprob": math.log(share), "bytes": None}
        for beginning, share in ((label[:2], 0.75), (other[:2], 0.25))
    ]
    said = {"role": "assistant", "content": "".join(tokens), "refusal": None}
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": said, "logprobs": None}
    if asked.get("logprobs"):
        choice["logprobs"] = {"content": content, "refusal": None}
    words = sum(len(message["content"].split()) for message in asked["messages"])
    if bad == "thinking":
        choice |= {"finish_reason": "length", "message": said | {"content": ""}}
    usage: dict[str, Any] = {"prompt_tokens": words, "completion_tokens": 6, "total_tokens": words + 6}
    if bad in _USAGES:
        usage = dict(zip(usage, _USAGES[bad], strict=True))
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice], "usage": usage}


@contextmanager
def running(**how: Any) -> Iterator[Server]:
    server = Server(**how)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
