"""One text per line; in fastText's form with its label before it, as `__label__billing`, or without labels."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from textcls.data import decoding
from textcls.data.rows import TOO_LONG, Bad, Content, ReadOptions, Row
from textcls.data.source import Source
from textcls.errors import InputError

PREFIX: Final = "__label__"
# As in fastText: every word that begins with the prefix is a label, wherever it is.
_LABEL: Final = re.compile(rf"(?:^|(?<=\s)){PREFIX}(\S*)")


def read(source: Source, options: ReadOptions, *, labels: bool = True) -> Content:
    """Read lines: the columns are `label` and `text`, or `text` alone if the first lines have no label.

    Args:
        source: the bytes.
        options: the encoding.
        labels: whether `__label__` begins a label; otherwise it is ordinary text.

    Raises:
        InputError: there are no lines.
    """
    encoding, notes = decoding.encoding_of(source, options)
    # The first lines may have no label while later ones do, so search all of the peeked text.
    labelled = _LABEL.search(decoding.first_text(source, encoding)) is not None
    lines = _lines(source, encoding)
    # Unusable lines do not show whether there are labels.
    before: list[Bad] = []
    for first in lines:
        if not isinstance(first, Bad):
            break
        before.append(first)
    else:
        for bad in before:
            if isinstance(bad, Bad):
                raise InputError(f"{bad.where}: {bad.why}.")
        raise InputError(f"{source.name} is empty; it needs at least one line.")
    lines = chain(before, [first], lines)
    if not labels:
        return Content("lines", ("text",), _texts(source.name, lines), notes)
    columns = ("label", "text") if labelled or _LABEL.search(first.text) else ("text",)
    return Content("fasttext", columns, _rows(source.name, columns, lines), notes)


class _Line(NamedTuple):
    number: int
    text: str
    blank: int


def _lines(source: Source, encoding: str) -> Iterator[_Line | Bad]:
    blank = 0
    for number, line in enumerate(decoding.Lines(decoding.open_text(source, encoding, "\n")), 1):
        why = f"{TOO_LONG}; shorten it or leave it out" if line is None else decoding.undecodable(line, encoding)
        if why is not None:
            yield Bad(f"{source.name}, line {number}", why)
        elif line is not None and line.strip():
            yield _Line(number, line.rstrip("\r\n"), blank)
            blank = 0
        else:
            blank += 1


def _texts(name: str, lines: Iterator[_Line | Bad]) -> Iterator[Row | Bad]:
    for line in lines:
        yield line if isinstance(line, Bad) else Row(line.number, {"text": line.text}, name, blank=line.blank)


def _rows(name: str, columns: tuple[str, ...], lines: Iterator[_Line | Bad]) -> Iterator[Row | Bad]:
    for each in lines:
        if isinstance(each, Bad):
            yield each
            continue
        number, line, blank = each
        labels = _LABEL.findall(line)
        if labels and "label" not in columns:
            why = f"the label {labels[0]!r}, where the first lines have none; label all lines, or none"
            yield Bad(f"{name}, line {number}", why)
            continue
        # One label is a string as in every format; several are a list, as in JSON lines.
        label = labels if len(labels) > 1 else "".join(labels)
        fields = {"label": label, "text": _LABEL.sub("", line).strip() if labels else line}
        yield Row(number, {column: fields[column] for column in columns}, name, blank=blank)
