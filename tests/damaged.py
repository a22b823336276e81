"""Reads files that chance has damaged, in a process of its own: `python -m tests.damaged FOLDER SEED SECONDS`.

Each is a good file of a kind, changed in some places. Whoever reads it gets what it holds or one sentence; another
exception, a signal that ends the process, or more than `DEADLINE` seconds are defects. FOLDER/damaged holds the file
that is read, and FOLDER/rounds.jsonl a line for each before it is read, and one for each defect.
"""

import io
import json
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.model_metadata import metadata_of, with_metadata
from textcls.data.rows import ReadOptions
from textcls.data.tables import open_table
from textcls.data.writing import open_writer
from textcls.errors import TextclsError
from textcls.model.classifier import Classifier, Text
from textcls.versions.folder import Registry
from textcls_training.state.finished import Finished
from textcls_training.vectors import file as vectors_file
from textcls_training.vectors import text_files

ROOT = Path(__file__).parent.parent
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.onnx"))
# Seconds that one file may take, on a busy machine.
DEADLINE = 60
# What stands where a number, a name or a list stood.
WILD: Sequence[Any] = (
    None,
    -1,
    0,
    1e308,
    2**63,
    float("nan"),
    "",
    "x" * 5000,
    "\x00",
    "\ud800",
    [],
    {},
    True,
    [[]],
    "..",
)
LENGTHS = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x00", b"\x80" * 9 + b"\x01")


class Kind(NamedTuple):
    """What is damaged: a file within a folder, and who reads it.

    Attributes:
        name: of the kind, and of the file.
        read: of the folder that holds the damaged file.
        file: within that folder.
    """

    name: str
    read: Callable[[Path], object]
    file: str


def rows(folder: Path, name: str) -> int:
    """Read a table to its end."""
    with open_table(folder / name, ReadOptions()) as table:
        return sum(1 for _ in table.rows)


def answers(folder: Path, name: str) -> object:
    """Load a model, and ask it."""
    classifier = Classifier.load(folder / name)
    columns = classifier.info.text_columns
    text: Text = "my card was charged" if len(columns) == 1 else dict.fromkeys(columns, "my card")
    return classifier.predict([text]), classifier.explain(text)


def published(folder: Path) -> object:
    """Read all of a registry, and load what is promoted."""
    registry = Registry.open(folder)
    promoted = registry.state().promoted
    return registry.versions(), None if promoted is None else registry.load(promoted)


def table_kinds(folder: Path) -> Iterator[Kind]:
    """Write tables of all formats, packed ones too."""
    table = ROOT / "textcls" / "demo" / "support_tickets_test.csv"
    with open_table(table) as read:
        found = list(read.rows)[:60]
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a.arrow", "a.xlsx", "b.csv.gz", "b.jsonl.zst"):
        kind: Any = {"csv.gz": "csv", "jsonl.zst": "jsonl"}.get(name[2:], name[2:])
        if kind == "json":
            (folder / name).write_text(json.dumps([row.fields for row in found]), "utf-8")
        elif kind == "arrow":
            import pyarrow as pa
            from pyarrow import ipc

            columns = pa.table({key: [row.fields[key] for row in found] for key in found[0].fields})
            with ipc.new_file(str(folder / name), columns.schema) as sink:
                sink.write_table(columns)
        else:
            with open_writer(folder / name, kind, list(found[0].fields), ["more"]) as writer:
                writer.write(found, [{"more": str(i / 7)} for i in range(len(found))])
        yield Kind(name, partial(rows, name=name), name)


def kinds(folder: Path) -> list[Kind]:
    """Write a good file of each kind into a folder of its own below `folder`."""
    made: list[Kind] = []

    def add(kind: Kind, write: Callable[[Path], object]) -> None:
        (folder / kind.name).mkdir(parents=True)
        write(folder / kind.name)
        made.append(kind)

    (folder / "tables").mkdir(parents=True)
    for kind in table_kinds(folder / "tables"):
        add(kind, partial(shutil.copy, folder / "tables" / kind.file))
    for path in GOLDEN:
        kind = Kind(path.name, partial(answers, name=path.name), path.name)
        add(kind, partial(shutil.copy, path))
    add(
        Kind("words.vectors", lambda where: vectors_file.load(where / "words.vectors"), "words.vectors"),
        lambda where: vectors_file.save(
            where / "words.vectors", [f"w{i}" for i in range(50)], np.eye(50, 8, dtype=np.float32), {}, 8
        ),
    )
    add(
        Kind("glove.txt", lambda where: text_files.read(where / "glove.txt", 1000), "glove.txt"),
        lambda where: (where / "glove.txt").write_text("".join(f"w{i} 0.5 -1 {i}e-2\n" for i in range(50))),
    )
    add(Kind("finished.npz", Finished.load, "finished.npz"), state)
    add(Kind("registry.json", published, "registry.json"), registry)
    add(Kind("version.json", published, "1/version.json"), registry)
    return made


def state(where: Path) -> None:
    """Train, and keep the state."""
    import textcls

    texts = [f"{word} please {i}" for i in range(20) for word in ("refund", "parcel", "cancel")]
    options: dict[str, Any] = {"epochs": 1, "dim": 2, "ngrams": (), "vectors": "none"}
    textcls.train(texts, ["a", "b", "c"] * 20, where / "m.onnx", state=where, **options)


def registry(where: Path) -> None:
    """Publish a model twice."""
    from textcls.cli import main

    for model in GOLDEN[:2]:
        main(["publish", str(model), str(where)], standalone_mode=False)


# Damage


def damaged(content: bytes, name: str, chance: random.Random) -> bytes:
    """Change a file in some places: its bytes, or what it holds behind checksums and lengths."""
    if name.endswith(".onnx") and chance.random() < 0.5:
        return of_metadata(content, name, chance)
    if zipfile.is_zipfile(io.BytesIO(content)) and chance.random() < 0.6:
        return of_archive(content, chance)
    if name.endswith(".json") and chance.random() < 0.5:
        return json.dumps(of_json(json.loads(content), chance)).encode("utf-8", "surrogatepass")
    return of_bytes(content, chance)


def of_bytes(content: bytes, chance: random.Random) -> bytes:
    """Change some bytes: bits, numbers, what is missing, what stands twice."""
    found = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(7):
            case 0 if at < len(found):
                found[at] ^= 1 << chance.randrange(8)
            case 1:
                found[at : at + 1] = bytes([chance.randrange(256)])
            case 2:
                found[at : at + 4] = chance.choice(LENGTHS)
            case 3:
                del found[at : at + chance.choice((1, 4, 100, len(found)))]
            case 4:
                found[at:at] = found[at : at + chance.choice((1, 4, 100))]
            case 5:
                found[at:at] = chance.randbytes(chance.choice((1, 4, 100)))
            case _:
                other = chance.randrange(len(found) + 1)
                found[at : at + 8] = found[other : other + 8]
    return bytes(found)


def of_archive(content: bytes, chance: random.Random) -> bytes:
    """Change a member of a zip archive, whose checksums are right afterwards."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen = chance.choice(names)
        for name in names:
            if name != chosen:
                new.writestr(name, old.read(name))
            elif chance.random() < 0.9:
                new.writestr(name, of_bytes(old.read(name), chance))
    return target.getvalue()


def of_metadata(content: bytes, name: str, chance: random.Random) -> bytes:
    """Change what a model says of itself."""
    path = next(path for path in GOLDEN if path.name == name)
    return with_metadata(path, of_json(metadata_of(path), chance))


def of_json(found: Any, chance: random.Random) -> Any:
    """Put something wild at a random place, or leave the place out."""
    if isinstance(found, dict) and found and chance.random() < 0.85:
        key = chance.choice(sorted(found))
        if chance.random() < 0.1:
            return {name: value for name, value in found.items() if name != key}
        return {**found, key: of_json(found[key], chance)}
    if isinstance(found, list) and found and chance.random() < 0.7:
        at = chance.randrange(len(found))
        return [*found[:at], of_json(found[at], chance), *found[at + 1 :]]
    return chance.choice(WILD)


# Reading


class SlowError(Exception):
    """It took longer than `DEADLINE`."""


def attempt(kind: Kind, folder: Path) -> str | None:
    """Read; return what is wrong with how it went, None if nothing."""

    def late(number: int, frame: object) -> None:
        raise SlowError

    signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE)
    try:
        kind.read(folder)
    except TextclsError as error:
        return None if str(error).strip() and "\n" not in str(error) else f"not one line: {error!r}"
    except BaseException:
        return traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)
    return None


def main(folder: Path, seed: int, seconds: float) -> None:
    """Damage and read until the time is up."""

    def tell(line: dict[str, Any]) -> None:
        with (folder / "rounds.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    warnings.simplefilter("ignore")
    chance = random.Random(seed)
    made = kinds(folder / "good")
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        number += 1
        kind = chance.choice(made)
        where = folder / "damaged"
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(folder / "good" / kind.name, where)
        good = (where / kind.file).read_bytes()
        (where / kind.file).write_bytes(damaged(good, kind.file, chance))
        tell(said := {"round": number, "kind": kind.name})
        if (wrong := attempt(kind, where)) is not None:
            shutil.copytree(where, folder / f"defect-{number}", dirs_exist_ok=True)
            tell({**said, "wrong": wrong})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
