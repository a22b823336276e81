"""Clients of a running service: how they ask, what they are told, and many of them at once."""

import json
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import httpx

from tests.service.processes import PATIENCE, until

BODY = b'{"inputs": "my card was charged twice"}'
LONG = json.dumps({"inputs": "my card was charged twice " * 700}).encode()
JSON = {"content-type": "application/json"}
KEYS = ("key-of-the-first-client", "key-of-the-second-client")
ADMIN = "key-of-the-administrator"


def client_of(url: str, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """A client that keeps its connection, and so asks one worker."""
    return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False)


def clients_of(url: str) -> httpx.Client:
    """A client that opens a connection for each request, so that all workers are asked."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=url, timeout=PATIENCE, limits=limits, trust_env=False)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def post(
    client: httpx.Client, content: bytes = BODY, headers: Mapping[str, str] = MappingProxyType({}), **more: str
) -> httpx.Response:
    """The response to a request for answers."""
    return client.post("/v1/classify", content=content, headers={**JSON, **headers, **more})


def ask(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    """The answer to a request of these fields, which must be answered."""
    # json.dumps writes unpaired surrogates as escapes, as JavaScript does; httpx's own encoder would fail.
    response = post(client, json.dumps(fields).encode())
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def refusal(client: httpx.Client, status: int, body: Any, headers: Mapping[str, str] = JSON) -> str:
    """Send what must be refused with `status`; return the message."""
    content = body if isinstance(body, bytes) else json.dumps(body)
    return message(client.post("/v1/classify", content=content, headers=headers), status)


def message(response: httpx.Response, status: int) -> str:
    """What a response says, which must be an error of this status."""
    assert response.status_code == status, response.text
    answer = response.json()
    assert list(answer) == ["error"]
    assert list(answer["error"]) == ["type", "message"]
    found: str = answer["error"]["message"]
    assert found.endswith(".")
    return found


def numbers(client: httpx.Client, **headers: str) -> dict[str, float]:
    """The numbers of /metrics by name and labels."""
    lines = client.get("/metrics", headers=headers).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def leaves(value: Any) -> Iterator[Any]:
    """All values of an answer that hold no others, in order; those in strings that are JSON as well."""
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    if isinstance(value, dict | list):
        for _, each in sorted(value.items()) if isinstance(value, dict) else enumerate(value):
            yield from leaves(each)
    else:
        yield value


class Load:
    """Clients that ask without pause, each on a connection of its own that is kept as long as the server likes."""

    def __init__(self, url: str, clients: int = 4) -> None:
        self.url, self.stop = url, threading.Event()
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
            thread.join(PATIENCE)

    def _ask(self) -> None:
        with client_of(self.url) as client:
            while not self.stop.is_set():
                try:
                    self.statuses.append(post(client).status_code)
                except httpx.HTTPError as error:
                    self.failures.append(f"{type(error).__name__}: {error}")

    def more(self, count: int) -> None:
        """Wait until so many more are answered."""
        goal = len(self.statuses) + count
        until(lambda: len(self.statuses) >= goal)
