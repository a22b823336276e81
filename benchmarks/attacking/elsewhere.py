"""Section 6: files and addresses whose owner is somebody else, given to the commands that read them."""

import os
import re
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
import onnx
import openpyxl
import pyarrow
import pyarrow.parquet

from attacking import commands
from attacking.bench import Bench, Result, attack
from attacking.watching import Figures
from attacking.wire import Seen

_SECTION: Final = "6. files and addresses of others"
_ROWS: Final = "".join(f"{('billing', 'returns')[n % 2]},my card was charged {n % 2} times\n" for n in range(10_000))
_TABLE: Final = f"label,text\n{_ROWS}".encode()
_KEY: Final = "m/../../overwritten.csv"
_LISTING: Final = f"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix></Prefix>
<KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>{_KEY}</Key>
<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"0"</ETag><Size>{len(_TABLE)}</Size>
<StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>"""
# What a command may take over reading a short table.
_MORE_MB: Final = 150.0
_SECONDS: Final = 30.0


class _Store(BaseHTTPRequestHandler):
    """A web server whose table ends early, and a store of objects with one wild key."""

    def do_HEAD(self) -> None:
        if self.path.endswith(("/overwritten.csv", "/early.csv")):
            self._answer(_TABLE, len(_TABLE), body=False)
        else:
            self.send_error(404)

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/early.csv":
            self._answer(_TABLE[: len(_TABLE) * 2 // 5], len(_TABLE))
        elif address.path.endswith("/overwritten.csv"):  # clients shorten the path
            self._answer(_TABLE, len(_TABLE))
        else:
            self._answer(_LISTING.encode(), len(_LISTING))

    def _answer(self, content: bytes, said: int, body: bool = True) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        self.send_response(206 if asked else 200)
        if asked:
            first, last = map(int, asked.groups())
            content = content[first : last + 1]
            self.send_header("Content-Range", f"bytes {first}-{last}/{said}")
            said = len(content)
        self.send_header("Content-Length", str(said))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(content if body else b"")
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def _store() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _folder(bench: Bench) -> Iterator[Path]:
    """An empty folder, `run` within it to work in."""
    place = bench.work / "elsewhere"
    shutil.rmtree(place, ignore_errors=True)
    (place / "run").mkdir(parents=True)
    yield place / "run"
    shutil.rmtree(place)


def _refused(figures: Figures, seen: Seen) -> Result:
    """The command must end with an error of its own; what memory it took does not count."""
    figures.grown_mb = None
    if seen.said["exit"] == 0:
        seen.broken.append("taken for good")
    return Result(figures, seen)


@attack(_SECTION, "textcls predict s3://... with a key that leads out of the output folder")
def wild_key(bench: Bench) -> Result:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
    with _folder(bench) as folder, _store() as address:
        variables = keys | {"AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true"}
        given = "predict", str(bench.model), "s3://bucket/m", "--output", "out/deep/"
        figures, seen, _ = commands.run(bench, *given, variables=variables, folder=folder)
        found = {path.name for path in folder.parent.rglob("*") if path.is_file() and "deep" not in path.parts}
    seen.broken += ["a file outside the output folder was written"] if found else []
    return _refused(figures, seen)


@attack(_SECTION, "textcls predict of a body that ends before its length")
def early_end(bench: Bench) -> Result:
    with _folder(bench) as folder, _store() as address:
        given = "predict", str(bench.model), f"{address}/early.csv", "--output", "answers.csv"
        figures, seen, _ = commands.run(bench, *given, folder=folder)
    return _refused(figures, seen)


@attack(_SECTION, "textcls train on a body that ends before its length")
def early_end_of_training(bench: Bench) -> Result:
    with _folder(bench) as folder, _store() as address:
        given = "train", f"{address}/early.csv", "--output", "model.onnx", "--epochs", "1"
        figures, seen, _ = commands.run(bench, *given, folder=folder)
    return _refused(figures, seen)


@attack(_SECTION, "textcls predict of a folder, one of its Arrow files with a wild offset")
def wild_offset(bench: Bench) -> Result:
    with _folder(bench) as folder:
        (folder / "in").mkdir()
        (folder / "in" / "b.csv").write_bytes(_TABLE)
        texts = pyarrow.array(["first text", "second text", "third"])
        offset = np.frombuffer(texts.buffers()[1], np.int32).copy()
        offset[2] = 2**31 - 1
        wild = pyarrow.Array.from_buffers(
            pyarrow.string(), 3, [None, pyarrow.py_buffer(offset.tobytes()), texts.buffers()[2]]
        )
        batch = pyarrow.record_batch([wild], ["text"])
        with pyarrow.ipc.new_file(str(folder / "in" / "a.arrow"), batch.schema) as writer:
            writer.write_batch(batch)
        given = "predict", str(bench.model), "in/*", "--output", "out/"
        figures, seen, _ = commands.run(bench, *given, folder=folder)
        answered = any((folder / "out").rglob("b*")) if (folder / "out").exists() else False
    seen.broken += [] if answered else ["the other file is not answered"]
    return _refused(figures, seen)


@attack(_SECTION, f"textcls predict of tables that unpack to gigabytes, limit {commands.LIMIT_MIB} MiB")
def unpacking(bench: Bench) -> Result:
    """A Parquet file of one text many times over, and a workbook with many empty strings."""
    result = Result(Figures(), Seen(), _MORE_MB)
    with _folder(bench) as folder:
        (folder / "short.csv").write_text("text\nmy card was charged twice\n", encoding="utf-8")
        text = pyarrow.array(["my card was charged twice " * 40])
        many = pyarrow.table({"text": pyarrow.DictionaryArray.from_arrays(np.zeros(600_000, np.int32), text)})
        pyarrow.parquet.write_table(many, folder / "many.parquet", row_group_size=600_000)
        _write_workbook(folder / "many.xlsx")
        bare, _, _ = _predicted(bench, folder, "short.csv")
        for name in ("many.parquet", "many.xlsx"):
            figures, seen, seconds = _predicted(bench, folder, name)
            # So many texts take their time, which is no harm.
            seen.broken = [each for each in seen.broken if not each.startswith("not done")]
            figures.grown_mb = round((figures.grown_mb or 0) - (bare.grown_mb or 0), 1)
            result.figures.merge(figures)
            result.seen.said[name] = seen.said | {"mb": figures.grown_mb, "seconds": seconds}
            result.seen.broken += [f"{name}: {each}" for each in seen.broken]
    return result


def _write_workbook(path: Path) -> None:
    """Write a workbook of one text whose strings are exchanged for 180 million empty ones."""
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["my card was charged twice"])
    plain = path.with_suffix(".plain")
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != "xl/sharedStrings.xml":
                new.writestr(name, old.read(name))
        with new.open("xl/sharedStrings.xml", "w", force_zip64=True) as file:
            file.write(b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">')
            for _ in range(180):
                file.write(b"<si/>" * 1_000_000)
            file.write(b"</sst>")


def _predicted(bench: Bench, folder: Path, name: str) -> tuple[Figures, Seen, float]:
    given = "predict", str(bench.model), name, "--output", "answers.csv"
    return commands.run(bench, *given, folder=folder, seconds=_SECONDS)


@attack(_SECTION, "textcls predict by a model whose numbers stand in another file")
def external_data(bench: Bench) -> Result:
    with _folder(bench) as folder:
        model = onnx.load(bench.model)
        largest = max(model.graph.initializer, key=lambda each: len(each.raw_data))
        (folder / "secret").write_bytes(largest.raw_data)
        largest.ClearField("raw_data")
        largest.data_location = onnx.TensorProto.EXTERNAL
        entry = largest.external_data.add()
        entry.key, entry.value = "location", "secret"
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        (folder / "short.csv").write_text("text\nmy card was charged twice\n", encoding="utf-8")
        given = "predict", "model.onnx", "short.csv", "--output", "answers.csv"
        figures, seen, _ = commands.run(bench, *given, folder=folder)
    return _refused(figures, seen)


def _state_with(name: str, exchange: Callable[[Path], None]) -> None:
    @attack(_SECTION, f"textcls train --state, {name}")
    def run(bench: Bench) -> Result:
        with _folder(bench) as folder:
            (folder / "rows.csv").write_bytes(_TABLE[: len(_TABLE) // 20])
            given = "train", "rows.csv", "--output", "model.onnx", "--epochs", "1", "--state", "state"
            figures, seen, _ = commands.run(bench, *given, folder=folder)
            seen.broken += [] if seen.said["exit"] == 0 else ["cannot be tried: the first training failed"]
            exchange(folder / "state" / "finished.npz")
            figures, again, _ = commands.run(bench, *given, folder=folder, seconds=_SECONDS)
        figures.grown_mb = None
        # Trained anew or refused: either is well.
        return Result(figures, Seen(again.said, [*seen.broken, *again.broken]))


def _exchanged_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _with_halves(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


_state_with("a FIFO as its finished.npz", _exchanged_by_pipe)
_state_with("half of its finished.npz", _with_halves)
