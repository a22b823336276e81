"""A running service whose models are exchanged, and files to exchange them with."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.model_metadata import metadata_of, with_metadata
from tests.service.clients import ADMIN, bearer, clients_of, numbers
from tests.service.processes import MAIN, PATIENCE, command, stop, workers

REFUSED, DONE = 'textcls_reloads_total{result="refused"}', 'textcls_reloads_total{result="done"}'
LABELS = ["account", "billing", "cancellation", "returns", "sales", "shipping", "technical"]


class Served:
    """A running `textcls serve` that its administrator may reload."""

    def __init__(self, process: "subprocess.Popen[str]", client: httpx.Client) -> None:
        self.process, self.client = process, client

    def label(self) -> str:
        found = self.client.post("/v1/classify", json={"inputs": "my card was charged twice"})
        assert found.status_code == 200, found.text
        return str(found.json()["results"][0]["label"])

    def numbers(self) -> dict[str, float]:
        return numbers(self.client)

    def reload(self) -> httpx.Response:
        return self.client.post("/v1/admin/reload", headers=bearer(ADMIN))

    def refused(self, times: int) -> bool:
        """Whether so many reloads have been refused."""
        return self.numbers()[REFUSED] == times

    def workers(self) -> list[int]:
        return workers(self.process)

    def stop(self) -> tuple[int, str]:
        return stop(self.process)


@contextmanager
def served(*arguments: str | Path, code: str = MAIN, afresh: bool = False) -> Iterator[Served]:
    """As `command`; where reading a file must come to its end sooner, `arguments` say so."""
    bound = () if "--load-seconds" in arguments else ("--load-seconds", str(PATIENCE))
    running = command(*arguments, *bound, env={"TEXTCLS_ADMIN_KEY": ADMIN}, code=code, afresh=afresh)
    with running as (process, url), clients_of(url) as client:
        yield Served(process, client)


def change_metadata(source: Path, target: Path, **changes: object) -> Path:
    """Write a model whose metadata are others into the place of `target`."""
    beside = target.with_suffix(".new")
    beside.write_bytes(with_metadata(source, {**metadata_of(source), **changes}))
    return beside.replace(target)
