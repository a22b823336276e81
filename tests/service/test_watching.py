"""Models and keys that are exchanged in every pod: real servers over one volume, as a kubelet writes it."""

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.service.clients import KEYS, Load, bearer, client_of, clients_of, numbers, post
from tests.service.processes import PATIENCE, command, until, workers
from tests.service.server import awaited, serving
from textcls import Classifier
from textcls.server.models import file_stamps, registry, watching
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import audit
from textcls.server.problems import RefusalError
from textcls.server.service import Service
from textcls.server.settings import Settings


class Volume:
    """A mounted Secret or ConfigMap: files are links into `..data`, which is a link to a folder that is replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = 0

    def publish(self, **files: bytes | Path) -> None:
        self._number += 1
        folder = self.path / f"..2026_11_21_{self._number}"
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        data, beside = self.path / "..data", self.path / "..data_tmp"
        before = data.resolve()
        beside.symlink_to(folder.name)
        beside.rename(data)
        for name in files:
            link = self.path / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
        if before != data:
            shutil.rmtree(before)


@pytest.fixture
def keys(tmp_path: Path) -> Volume:
    return Volume(tmp_path / "keys")


@pytest.fixture
def models(tmp_path: Path, model_path: Path) -> Volume:
    volume = Volume(tmp_path / "models")
    volume.publish(**{"tickets.onnx": model_path})
    return volume


@pytest.fixture
def pods(keys: Volume, models: Volume) -> Iterator[list[str]]:
    """Two services of their own over the same volumes; one has two workers."""
    keys.publish(api_keys=KEYS[0].encode())
    options = ("--api-keys-file", keys.path / "api_keys", "--watch-seconds", "0.2", "--public-metrics")
    with ExitStack() as stack:
        started = [stack.enter_context(command(models.path, *options, "--workers", n)) for n in ("1", "2")]
        yield [url for _, url in started]


def statuses(url: str, key: str) -> set[int]:
    """What a key is answered by all workers."""
    with clients_of(url) as client:
        return {post(client, b'{"inputs": "a"}', bearer(key)).status_code for _ in range(12)}


def model(url: str, key: str) -> set[str]:
    with clients_of(url) as client:
        found = [client.get("/v1/models", headers=bearer(key)).json() for _ in range(12)]
    return {each["models"][0]["sha256"] for each in found}


def test_keys_in_a_volume_are_exchanged_in_every_pod_without_a_signal(pods: list[str], keys: Volume) -> None:
    assert [statuses(url, KEYS[0]) for url in pods] == [{200}] * 2
    keys.publish(api_keys=f"{KEYS[0]}\ndesk: {KEYS[1]}\n".encode())
    for url in pods:
        until(lambda url=url: statuses(url, KEYS[1]) == {200})  # type: ignore[misc]
        assert statuses(url, KEYS[0]) == {200}
    keys.publish(api_keys=f"desk: {KEYS[1]}\n".encode())
    for url in pods:
        until(lambda url=url: statuses(url, KEYS[0]) == {401})  # type: ignore[misc]
        assert statuses(url, KEYS[1]) == {200}
        with client_of(url) as client:
            found = numbers(client)
        # Of the workers of a pod, one reloads.
        assert found['textcls_reloads_total{result="done"}'] == 2
        assert found["textcls_generation"] == 3


def test_models_in_a_volume_are_exchanged_in_every_pod_and_a_bad_one_in_none(
    pods: list[str], models: Volume, whole_tokens_path: Path, model_path: Path
) -> None:
    before = registry.serve(Classifier.load(model_path)).sha256
    after = registry.serve(Classifier.load(whole_tokens_path)).sha256
    models.publish(**{"tickets.onnx": b"no model"})
    for url in pods:
        with client_of(url) as client:
            until(lambda client=client: numbers(client)['textcls_reloads_total{result="refused"}'] == 1)  # type: ignore[misc]
        assert model(url, KEYS[0]) == {before}
    models.publish(**{"tickets.onnx": whole_tokens_path})
    for url in pods:
        until(lambda url=url: model(url, KEYS[0]) == {after})  # type: ignore[misc]
        with client_of(url) as client:
            assert numbers(client)['textcls_reloads_total{result="refused"}'] == 1


def test_no_request_fails_while_models_are_exchanged(models: Volume, whole_tokens_path: Path, model_path: Path) -> None:
    with (
        command(models.path, "--watch-seconds", "0.1") as (_, url),
        Load(url) as load,
        client_of(url) as c,
    ):
        for number, path in ((2, whole_tokens_path), (3, model_path)):
            load.more(20)
            models.publish(**{"tickets.onnx": path})
            until(lambda number=number: numbers(c)["textcls_generation"] == number)  # type: ignore[misc]
        load.more(20)
        assert (load.failures, set(load.statuses)) == ([], {200})


def test_a_model_that_is_added_to_a_folder_is_served_and_a_signal_is_not_answered_twice(
    model_path: Path, tmp_path: Path
) -> None:
    shutil.copy(model_path, tmp_path / "a.onnx")
    with (
        command(tmp_path, "--watch-seconds", "2") as (process, url),
        client_of(url) as client,
    ):
        shutil.copy(model_path, tmp_path / "b.onnx.part")
        (tmp_path / "b.onnx.part").rename(tmp_path / "b.onnx")
        process.send_signal(signal.SIGUSR1)
        until(lambda: len(client.get("/v1/models").json()["models"]) == 2)
        shutil.copy(model_path, tmp_path / "c.onnx.part")
        (tmp_path / "c.onnx.part").rename(tmp_path / "c.onnx")
        until(lambda: len(client.get("/v1/models").json()["models"]) == 3)
        assert numbers(client)["textcls_generation"] == 3


def test_when_the_worker_that_watches_dies_another_does(models: Volume, whole_tokens_path: Path) -> None:
    def count(name: str) -> float:
        with client_of(url) as client:  # the one before may be that of a dead worker
            return numbers(client)[name]

    with command(models.path, "--watch-seconds", "0.2", "--workers", "2") as (process, url):
        for pid in workers(process):
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: len(workers(process)) == 2 and pid not in workers(process))  # type: ignore[misc]
            until(lambda: count("textcls_workers") == 2)
        models.publish(**{"tickets.onnx": whole_tokens_path})
        until(lambda: count("textcls_generation") == 2)


def test_without_being_told_nobody_looks_at_files(store: GenerationStore, tmp_path: Path, model_path: Path) -> None:
    assert Settings().watch_seconds == 0
    before = store.number()
    shutil.copy(model_path, tmp_path / "tickets.onnx")
    assert store.files() != store.published_files()
    assert store.number() == before


def test_a_folder_without_models_is_a_change_and_no_error(tmp_path: Path, model_path: Path) -> None:
    shutil.copy(model_path, tmp_path / "tickets.onnx")
    settings = Settings(api_keys_file=tmp_path / "keys")
    first = file_stamps.stamps([str(tmp_path)], settings)
    assert file_stamps.stamps([str(tmp_path)], settings) == first
    (tmp_path / "keys").write_text(KEYS[0])
    second = file_stamps.stamps([str(tmp_path)], settings)
    (tmp_path / "tickets.onnx").unlink()
    third = file_stamps.stamps([str(tmp_path)], settings)
    assert len({str(each) for each in (first, second, third)}) == 3


def test_files_that_cannot_be_looked_at_are_told_and_hold_up_nothing(
    models: Volume, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    settings = Settings(watch_seconds=0.1)
    store = GenerationStore(tmp_path / "run", [str(models.path)], settings)
    store.publish()
    hangs = threading.Event()
    monkeypatch.setattr(watching, "_HANGS_SECONDS", 0.1)
    monkeypatch.setattr(GenerationStore, "files", lambda self: hangs.wait(PATIENCE) and [])
    try:
        with serving(Service.of(store, settings)) as client:
            until(lambda: "their file system does not answer" in caplog.text)
            assert post(client).status_code == 200
    finally:
        hangs.set()


@pytest.mark.parametrize(
    ("looks", "asked_at"),
    [
        ([0, 0, 0, 0, 0, 0], []),
        # Still being written at the second and third look.
        ([0, 1, 2, 3, 3, 3], [5]),
        # Refused, and not asked for again until it is another file, or back to what is served.
        ([0, 4, 4, 4, 4, 5, 5], [3, 7]),
        ([0, 4, 4, 4, 0, 4, 4], [3, 7]),
    ],
)
def test_files_are_read_once_they_no_longer_change(tmp_path: Path, looks: list[int], asked_at: list[int]) -> None:
    """What is served is 0, and even numbers are bad files."""
    seen: list[int] = []
    asked: list[int] = []
    served = 0

    class GenerationStore:
        folder = tmp_path

        def files(self) -> list[int]:
            if len(seen) == len(looks):
                raise EOFError("no more looks")
            seen.append(looks[len(seen)])
            return [seen[-1]]

        def published_files(self) -> list[int]:
            return [served]

    async def reload(caller: object) -> None:
        nonlocal served
        assert caller == audit.WATCH
        asked.append(len(seen))
        if seen[-1] % 2 == 0:
            raise RefusalError(409, "bad")
        served = seen[-1]

    with pytest.raises(EOFError, match="no more looks"):
        awaited(watching.follow(GenerationStore(), 0.001, reload))  # type: ignore[arg-type]
    assert asked == asked_at
