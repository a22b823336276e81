"""Load the operator's files, models and keys, where they can do no harm.

At the start a thread reads and tests them, so that Ctrl-C and the deadline work even if a file system hangs. For a
reload a separate process does: a model may crash it or exhaust its memory, and a call to a hanging file system, which
not even SIGKILL may end, does not block any worker. The results are tested copies of the models in the workers' shared
folder.
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
from textcls.server.models import file_stamps, registry
from textcls.server.models.manifest import Loaded, ModelEntry
from textcls.server.models.registry import ModelSource
from textcls.server.settings import Settings
from textcls.server.system import shared_folder, signals
from textcls.versions.folder import check_content

# Time that a process may need to start and end in addition to its work, and a thread to end.
_GRACE_SECONDS: Final = 5
_CODE: Final = "import sys; sys.path[:] = {path!r}; from textcls.server.models import loading; loading.main({lifeline})"
Result = TypeVar("Result")


class LoadRequest(NamedTuple):
    """What to load: the models named by `arguments` and the keys named by `settings`, with copies in `folder`."""

    arguments: tuple[str, ...]
    settings: Settings
    folder: Path

    def to_json(self) -> bytes:
        """Return the request in the form that `from_json` reads."""
        return json.dumps([self.arguments, asdict(self.settings), self.folder], default=str).encode()

    @classmethod
    def from_json(cls, data: bytes) -> "LoadRequest":
        """Return the request that `to_json` has written as `data`."""
        arguments, settings, folder = json.loads(data)
        for field in fields(Settings):
            value = settings[field.name]
            if field.type == Path | None and value is not None:
                settings[field.name] = Path(value)
            elif isinstance(value, list):
                settings[field.name] = tuple(value)
        return cls(tuple(arguments), Settings(**settings), Path(folder))


def load(request: LoadRequest, now: Callable[[str], None] = lambda path: None) -> Loaded:
    """Read and test the requested files, and keep copies of the models.

    Args:
        request: what to load.
        now: called with each file before work on it starts.

    Raises:
        ArtifactError: a model cannot be used.
        ConfigError: the names of models are not valid, or the keys cannot be used.
        SurroundingsError: there is no room for the copies.
    """
    now(" ".join(request.arguments))
    # Before the files are read: if one is replaced meanwhile, its stamp differs, and it is read again.
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
    return Loaded(tuple(models), keys.digests(), admin_keys.digests(), files)


def _copy(source: ModelSource, request: LoadRequest) -> ModelEntry:
    """Test a model and keep a copy of it; return its entry for the manifest."""
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
    )


def in_thread(work: Callable[[], Result]) -> "Future[Result]":
    """Run `work` in a thread that the process does not wait for when it ends."""
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()  # From now on it cannot be cancelled, so its result can always be set.

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="textcls-loading", daemon=True).start()
    return done


def load_in_thread(request: LoadRequest) -> Loaded:
    """Load the requested files in a thread of this process.

    Raises:
        As `load` does, and SurroundingsError: it is not done within `load_seconds`.
    """
    at: list[str] = []
    loading = in_thread(lambda: load(request, at.append))
    try:
        return loading.result(request.settings.load_seconds)
    except TimeoutError as error:
        # A thread that returns from ONNX Runtime while the interpreter shuts down aborts the process.
        atexit.register(wait, [loading], _GRACE_SECONDS)
        raise _too_slow(at, request.settings) from error


def load_in_process(request: LoadRequest) -> Loaded:
    """Load the requested files in a separate process; on Windows in a thread.

    Raises:
        As `load` does, and SurroundingsError: the process is not done within `load_seconds`, or dies.
    """
    if sys.platform == "win32":  # Processes there cannot inherit a pipe that shows when this one ends.
        return load_in_thread(request)
    with _lifeline() as theirs:
        process = _start(theirs)
        try:
            output, _ = process.communicate(request.to_json(), request.settings.load_seconds)
        except subprocess.TimeoutExpired as error:
            # Do not wait for it: a process in a call to a hanging file system does not always end when killed.
            process.kill()
            raise _too_slow(_lines(error.output or b"")[0], request.settings) from error
    at, found = _lines(output)
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
    """Open a pipe and yield its read end, which shows when this process ends: the write end is then closed."""
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
                # What libraries print about a damaged file does not belong in the log; the result says what is wrong.
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # so that it does not get Ctrl-C
            )
    except OSError as error:
        raise _no_process(error) from error


def _no_process(error: OSError) -> SurroundingsError:
    why = os.strerror(error.errno or 0)
    return SurroundingsError(f"No process can be started to read and test the models: {why}; try later.")


def _lines(output: bytes) -> tuple[list[str], dict[str, Any] | None]:
    """Return which files the process has started on, and its result if it finished."""
    at: list[str] = []
    for line in output.splitlines():
        with suppress(ValueError):  # a truncated line
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
    """Load what standard input requests; write each file's path, then the result, to standard output as JSON lines."""
    threading.Thread(target=_end_with, args=[lifeline], daemon=True).start()
    request = LoadRequest.from_json(sys.stdin.buffer.read())
    # The operating system enforces this deadline, whatever a model does to the interpreter.
    signal.alarm(math.ceil(request.settings.load_seconds) + _GRACE_SECONDS)
    at = ["The request"]

    def now(path: str) -> None:
        at.append(path)
        _say(json.dumps(path).encode())

    try:
        result = load(request, now).to_json()
    except TextclsError as error:
        result = _refused(type(error), str(error))
    except Exception as error:
        result = _refused(ArtifactError, f"{at[-1]} cannot be tested ({type(error).__name__}).")
    _say(result)


def _refused(kind: type[TextclsError], message: str) -> bytes:
    return json.dumps({"error": kind.__name__, "message": message}).encode()


def _end_with(lifeline: int) -> None:
    """End this process when its parent ends, which closes the parent's end of `lifeline`."""
    os.read(lifeline, 1)
    os._exit(1)


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
