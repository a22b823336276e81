"""Labels that are taught to a running service: how it is asked, and what it then answers."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from tests.service.clients import ADMIN, ask, bearer
from textcls.server.settings import Settings

EXAMPLES = ["zebra crossing", "a zebra on the lawn", "three zebras and a giraffe"]
TEXT = "zebra on the crossing"
# What the frozen model of prototypes has been taught.
FIRST = "returns"
ON = Settings(teaching=True)


def teach(
    client: httpx.Client, label: str = "animals", examples: Any = EXAMPLES, model: str = "tickets", **more: Any
) -> httpx.Response:
    """The response to examples of a label."""
    body = {"label": label, "examples": examples, **more}
    return client.post(f"/v1/models/{model}/labels", json=body, headers=bearer(ADMIN))


def take_back(client: httpx.Client, label: str = "animals", model: str = "tickets") -> httpx.Response:
    return client.delete(f"/v1/models/{model}/labels/{label}", headers=bearer(ADMIN))


def listed(client: httpx.Client) -> dict[str, int]:
    """The labels that the service lists, and how many examples each has been taught."""
    answer = client.get("/v1/models/tickets/labels", headers=bearer(ADMIN))
    assert answer.status_code == 200, answer.text
    return {each["label"]: each["taught_examples"] for each in answer.json()["labels"]}


def taught(client: httpx.Client) -> dict[str, int]:
    """The labels that have been taught, but for the one that the file had from the beginning."""
    return {label: times for label, times in listed(client).items() if times and label != FIRST}


def best(client: httpx.Client) -> str:
    """The label of a text that only what was taught can know."""
    return str(ask(client, inputs=TEXT, top_k=1)["results"][0]["label"])


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
