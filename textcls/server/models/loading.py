"""Take in the operator's files, models and keys, where they can do no harm.

At the start a thread reads and tests them, so that Ctrl-C and the deadline hold while a file system hangs. For a reload
it is a process: a model may kill it or take its memory, and a call to a hanging file system, which not even SIGKILL may
end, holds up nobody who answers. What is taken in are copies that have shown that they work, in the folder that the
workers share.
"""

import atexit
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from textcls import errors
from textcls.errors import ArtifactError, SurroundingsError, TextclsError
from textcls.model import artifact
from textcls.model.classifier import Classifier
from textcls.model.text_columns import named_columns
from textcls.server.admission import auth
from textcls.server.models import file_stamps, registry, rewriting
from textcls.server.models.manifest import Loaded, ModelEntry
from textcls.server.models.registry import ModelSource
from textcls.server.settings import Settings
from textcls.server.system import shared_folder, signals
from textcls.versions.folder import check_content

# What a process may need to start and to end beside its work, and a thread to end.
_GRACE_SECONDS: Final = 5
_CODE: Final = "import sys; sys.path[:] = {path!r}; from textcls.server.models import loading; loading.main({lifeline})"
Result = TypeVar("Result")


class LoadRequest(NamedTuple):
    """What is to be taken in: the models that `arguments` name, and the keys that `settings` name, into `folder`."""

    arguments: tuple[str, ...]
    settings: Settings
    folder: Path

    def to_json(self) -> bytes:
        """Return the request as `from_json` reads it."""
        return json.dumps([self.arguments, asdict(self.settings), self.folder], default=str).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "LoadRequest":
        """Return what `to_json` has made into `data`."""
        arguments, settings, folder = json.loads(data)
        for field in fields(Settings):
            value = settings[field.name]
            if field.type == Path | None and value is not None:
                settings[field.name] = Path(value)
            elif isinstance(value, list):
                settings[field.name] = tuple(value)
        return cls(tuple(arguments), Settings(**settings), Path(folder))


def load(request: LoadRequest, now: Callable[[str], None] = lambda path: None) -> Loaded:
    """Read and test what is requested, and keep copies of the models.

    Args:
        request: what to load.
        now: told which file is worked on.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: models cannot be named so, or the keys cannot be used.
        SurroundingsError: there is no room for the copies.
    """
    now(" ".join(request.arguments))
    # Before the files are read: what is replaced meanwhile differs from it, and is looked at once more.
    files = file_stamps.stamps(request.arguments, request.settings)
    now("the keys")
    keys, admin_keys = auth.load(request.settings)
    now(" ".join(request.arguments))
    try:
        sources = registry.resolve(request.arguments)
    except OSError as error:
        raise ArtifactError(f"{error.filename} cannot be read: {os.strerror(error.errno or 0)}.") from error
    models = []
    for source in sources:
        now(str(source.path))
        models.append(_copy(source, request))
        if request.settings.teaching:
            rewriting.sweep(source.path)
    return Loaded(tuple(models), keys.digests(), admin_keys.digests(), files)


def _copy(source: ModelSource, request: LoadRequest) -> ModelEntry:
    """Keep a copy of a model that can be used; return what the manifest says of it."""
    most = min(request.settings.max_model_bytes, artifact.MOST_BYTES)
    data = artifact.read_file(source.path, most, advice="; max_model_bytes says so")
    if source.published:
        check_content(source.path.parent, data)
    classifier = Classifier.from_bytes(data, source.path)
    digest = sha256(data).hexdigest()
    copy = request.folder / f"{digest}.onnx"
    if not copy.exists():
        shared_folder.write(copy, data)
    bins = registry.bins_json(classifier.info)
    return ModelEntry(
        name=source.name,
        version=source.version,
        sha256=digest,
        path=source.path,
        labels=tuple(classifier.labels),
        columns=named_columns(classifier.info.text_columns, classifier.info.columns),
        task=classifier.info.task,
        bins=bins,
        bytes=len(data),
        published=source.published,
    )


def in_thread(work: Callable[[], Result]) -> "Future[Result]":
    """Do `work` in a thread for which nobody waits when the process ends."""
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()  # From now on it cannot be cancelled, so that its end can always be told.

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="textcls-loading", daemon=True).start()
    return done


def load_in_thread(request: LoadRequest) -> Loaded:
    """Load what is requested, in a thread of this process.

    Raises:
        As `load` does, and SurroundingsError: it is not done within `load_seconds`.
    """
    at: list[str] = []
    loading = in_thread(lambda: load(request, at.append))
    try:
        return loading.result(request.settings.load_seconds)
    except TimeoutError as error:
        # A thread that comes back from ONNX Runtime while the interpreter ends aborts the process.
        atexit.register(wait, [loading], _GRACE_SECONDS)
        raise _too_slow(at, request.settings) from error


def load_in_process(request: LoadRequest) -> Loaded:
    """Load what is requested, in a process of its own; on Windows in a thread.

    Raises:
        As `load` does, and SurroundingsError: the process is not done within `load_seconds`, or dies.
    """
    if sys.platform == "win32":  # Processes there are given no pipe that shows when this one ends.
        return load_in_thread(request)
    with _lifeline() as theirs:
        process = _start(theirs)
        try:
            said, _ = process.communicate(request.to_json(), request.settings.load_seconds)
        except subprocess.TimeoutExpired as error:
            # It is not waited for: a call to a file system that hangs does not always end with its process.
            process.kill()
            raise _too_slow(_lines(error.output or b"")[0], request.settings) from error
    at, found = _lines(said)
    if found is None:
        what, how = at[-1] if at else "the models", signals.end_of(process.returncode)
        raise SurroundingsError(
            f"The process that reads and tests {what} ended ({how}) before it was done: there is too little memory, or "
            "the file is damaged."
        )
    if "error" in found:
        raise getattr(errors, found["error"])(found["message"])
    return Loaded.from_json(found)


@contextmanager
def _lifeline() -> Iterator[int]:
    """Open a pipe and give one end, which shows when this process ends, however it does: the other is closed then."""
    try:
        theirs, ours = os.pipe()
    except OSError as error:
        raise _no_process(error) from error
    try:
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)


def _start(lifeline: int) -> "subprocess.Popen[bytes]":
    try:
        with signals.pending_in_children():
            return subprocess.Popen(
                [sys.executable, "-c", _CODE.format(path=[*map(str, sys.path)], lifeline=lifeline)],
                pass_fds=[lifeline],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # What libraries print of a damaged file is not a line of this log; the result says why it is refused.
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is not for it
            )
    except OSError as error:
        raise _no_process(error) from error


def _no_process(error: OSError) -> SurroundingsError:
    why = os.strerror(error.errno or 0)
    return SurroundingsError(f"No process can be started to read and test the models: {why}; try later.")


def _lines(said: bytes) -> tuple[list[str], dict[str, Any] | None]:
    """Return which files the process has come to, and what it found if it came to its end."""
    at: list[str] = []
    for line in said.splitlines():
        with suppress(ValueError):  # a line that was cut off
            value = json.loads(line)
            if isinstance(value, dict):
                return at, value
            at.append(value)
    return at, None


def _too_slow(at: Sequence[str], settings: Settings) -> SurroundingsError:
    return SurroundingsError(
        f"{at[-1] if at else 'The models'} could not be read and tested within load_seconds, which is "
        f"{settings.load_seconds:g}: does the file system answer?"
    )


def main(lifeline: int) -> None:
    """Load what standard input requests; tell on standard output, in lines of JSON, each file, and last the result."""
    threading.Thread(target=_end_with, args=[lifeline], daemon=True).start()
    request = LoadRequest.from_json(sys.stdin.buffer.read())
    # The system keeps this promise, whatever a model does to the interpreter.
    signal.alarm(math.ceil(request.settings.load_seconds) + _GRACE_SECONDS)
    at = ["The request"]

    def now(path: str) -> None:
        at.append(path)
        _say(json.dumps(path).encode())

    try:
        said = load(request, now).to_json()
    except TextclsError as error:
        said = _refused(type(error), str(error))
    except Exception as error:
        said = _refused(ArtifactError, f"{at[-1]} cannot be tested ({type(error).__name__}).")
    _say(said)


def _refused(kind: type[TextclsError], message: str) -> bytes:
    return json.dumps({"error": kind.__name__, "message": message}).encode()


def _end_with(lifeline: int) -> None:
    """End this process when the one that waits for it does, which closes its end of `lifeline`."""
    os.read(lifeline, 1)
    os._exit(1)


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
