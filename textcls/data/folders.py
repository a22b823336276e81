"""Folders: the files of a table in one folder, or one folder per class with one text per file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from textcls.data import decoding, formats
from textcls.data.rows import LONGEST, TOO_LONG, Bad, Content, ReadOptions, Row
from textcls.data.source import open_source, reading
from textcls.errors import ConfigError, InputError

# Columns of class folders.
COLUMNS: Final = ("text", "label", "file")
# What Hugging Face's `datasets` puts beside the rows of a saved dataset.
_BESIDE: Final = ("dataset_info.json", "state.json")
# A character has at most four bytes.
_MOST_BYTES: Final = 4 * LONGEST


def files_of(folder: Path) -> list[Path]:
    """Return the files in `folder` whose names indicate a format, sorted by name; none if it contains class folders.

    Hidden files are left out, as are those that Excel writes while a workbook is open.

    Raises:
        InputError: it contains neither a readable file nor a class folder, or it contains both.
    """
    entries = sorted(
        path for path in folder.iterdir() if not path.name.startswith((".", "_", "~$")) and path.name not in _BESIDE
    )
    files = [path for path in entries if path.is_file() and (formats.by_name(path) or path.suffix.lower() == ".txt")]
    classes = [path for path in entries if path.is_dir()]
    if files and classes:
        raise InputError(
            f"{folder} holds files and folders, such as {files[0].name} and {classes[0].name}; name the files "
            "you mean, or keep the class folders separate."
        )
    if not files and not classes:
        raise InputError(f"{folder} contains no file in a known format; name one of its files, with --format.")
    return files


def read(folder: Path, options: ReadOptions) -> Content:
    """Read class folders: for each file, its text, the name of its class folder, and its own path.

    Raises:
        ConfigError: an option makes no sense here.
    """
    if options.format is not None or options.delimiter is not None or options.sheet is not None:
        raise ConfigError(
            f"{folder} is read as one folder per class and one file per text; leave out the options for tables."
        )
    encoding = "utf-8-sig" if options.encoding is None else decoding.text_encoding(options.encoding)
    note = f"{folder} is read as one folder per class and one file per text."
    return Content("lines", COLUMNS, _rows(folder, encoding), (note,))


def _rows(folder: Path, encoding: str) -> Iterator[Row | Bad]:
    for path in sorted(path for path in folder.glob("*/**/*") if _is_text(path.relative_to(folder)) and path.is_file()):
        with open_source(path) as source, reading(source.name):
            data = source.stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            yield Bad(str(path), f"{TOO_LONG}; shorten it or leave it out")
            continue
        text = data.decode(encoding, "surrogateescape")
        why = decoding.undecodable(text, encoding)
        label = path.relative_to(folder).parts[0]
        fields = {"text": text.rstrip("\r\n"), "label": label, "file": str(path.relative_to(folder))}
        yield Row(1, fields, str(path)) if why is None else Bad(str(path), why)


def _is_text(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)
