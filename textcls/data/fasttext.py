"""A text a line; in fastText's form with its label before it as `__label__billing`. Without labels, texts alone."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from textcls.data import decoding
from textcls.data.rows import Bad, Content, ReadOptions, Row
from textcls.data.source import Source
from textcls.errors import InputError

PREFIX: Final = "__label__"
# As fastText has it: every word that begins so is a label, wherever it stands.
_LABEL: Final = re.compile(rf"(?:^|(?<=\s)){PREFIX}(\S*)")


def read(source: Source, options: ReadOptions, *, labels: bool = True) -> Content:
    """Read lines: the columns are `label` and `text`, or `text` alone if the first line has no label.

    Args:
        source: the bytes.
        options: their encoding.
        labels: whether `__label__` begins a label; else it is text as any other.

    Raises:
        InputError: there are no lines.
    """
    encoding, notes = decoding.encoding_of(source, options)
    lines = (
        (number, line.rstrip("\r\n"))
        for number, line in enumerate(decoding.open_text(source, encoding, "\n"), 1)
        if line.strip()
    )
    first = next(lines, None)
    if first is None:
        raise InputError(f"{source.name} is empty; at least one line is needed.")
    if not labels:
        return Content("lines", ("text",), _texts(source.name, encoding, chain([first], lines)), notes)
    columns = ("label", "text") if _LABEL.search(first[1]) else ("text",)
    return Content("fasttext", columns, _rows(source.name, encoding, columns, chain([first], lines)), notes)


def _texts(name: str, encoding: str, lines: Iterator[tuple[int, str]]) -> Iterator[Row | Bad]:
    for number, line in lines:
        why = decoding.undecodable(line, encoding)
        yield Row(number, {"text": line}, name) if why is None else Bad(f"{name}, line {number}", why)


def _rows(name: str, encoding: str, columns: tuple[str, ...], lines: Iterator[tuple[int, str]]) -> Iterator[Row | Bad]:
    for number, line in lines:
        labels = _LABEL.findall(line)
        why = decoding.undecodable(line, encoding)
        if why is None and len(labels) > 1:
            shown = " and ".join(map(repr, labels[:2]))
            why = f"{len(labels)} labels, {shown}; one label a row is needed, so keep one or split the row"
        elif why is None and labels and "label" not in columns:
            why = f"the label {labels[0]!r}, where the first line has none; label all lines or none"
        if why is not None:
            yield Bad(f"{name}, line {number}", why)
            continue
        fields = {"label": labels[0] if labels else "", "text": _LABEL.sub("", line).strip() if labels else line}
        yield Row(number, {column: fields[column] for column in columns}, name)
