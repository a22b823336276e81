"""Clients of a running service."""

from collections.abc import Mapping

import httpx

from tests.service.processes import PATIENCE


def client_of(url: str, headers: Mapping[str, str] | None = None) -> httpx.Client:
    """A client that keeps its connection, and so asks one worker."""
    return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE)


def clients_of(url: str) -> httpx.Client:
    """A client that opens a connection for each request, so that all workers are asked."""
    return httpx.Client(base_url=url, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0))


def numbers(client: httpx.Client, **headers: str) -> dict[str, float]:
    """The numbers of /metrics by name and labels."""
    lines = client.get("/metrics", headers=headers).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
