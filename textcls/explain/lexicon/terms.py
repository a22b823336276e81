"""Words, pairs and triples of words, and pieces of words, with their counts: from texts, or from a list in a file.

A pair is written with a space between its words, `not good`, or at the edge of the text as `⟨start⟩ not`; a triple
likewise; a piece as in its word, with `<` and `>` for the word's edges: `<un`, `ing>`. No token looks like either.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from textcls._util.text_file import read_text
from textcls.errors import InputError
from textcls.model import tokenizer
from textcls.model.artifact import ModelInfo
from textcls.model.features import FeatureConfig

Kind = Literal["word", "pair", "triple", "piece", "column"]
# The kind of rows that describe columns beside the text, and are not terms; below, the kinds that are.
COLUMN: Final[Kind] = "column"
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)[:-1]
# The number of words in a sequence.
SEQUENCES: Final[Mapping[Kind, int]] = {"pair": 2, "triple": 3}
START, END = "\u27e8start\u27e9", "\u27e8end\u27e9"
FIRST, LAST = "<", ">"
# At most this many of each kind are counted.
MOST_TERMS: Final = 2_000_000
MOST_BYTES: Final = 500_000_000
HEAD: Final = ("kind", "term", "count")
_SUFFIX: Final = ".words.csv"


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that a model may be asked about.

    Attributes:
        of_kind: the terms of each kind, with their counts; pieces are those of the words, and none is a whole word.
        dropped: how many words and sequences were left out because there were too many, the rarest first.
    """

    of_kind: Mapping[Kind, Counter[str]]
    dropped: int = 0


def counted(info: ModelInfo, texts: Iterable[str], *, most: int = MOST_TERMS) -> Terms:
    """Return the words and sequences of texts, read once and not kept, as a model of `info` reads them.

    Of each kind at most `most` are kept; beyond that the rarest are dropped.
    """
    found = _nothing()
    read = {kind: size for kind, size in SEQUENCES.items() if size in info.features.orders}
    dropped = 0
    for text in texts:
        tokens = tokenizer.tokenize(text)[: info.max_tokens]
        found["word"].update(tokens)
        around = [START, *tokens, *([END] if len(tokens) < info.max_tokens else [])] if tokens else []
        for kind, size in read.items():
            found[kind].update(" ".join(around[i : i + size]) for i in range(len(around) - size + 1))
        dropped += sum(_forget(found[kind], most) for kind in ("word", *read))
    for word, count in found["word"].items():
        found["piece"].update(dict.fromkeys(_pieces(word, info.features), count))
        _forget(found["piece"], most)
    return Terms(found, dropped)


def _nothing() -> dict[Kind, Counter[str]]:
    return {kind: Counter() for kind in KINDS}


def beside(model: Path) -> Path:
    """Return the path at which the list of words of a model is kept, if there is one."""
    return model.with_name(model.stem + _SUFFIX)


def read_beside(model: Path, info: ModelInfo) -> Terms:
    """Return the terms of the list beside a model.

    Raises:
        InputError: as in `read_terms`; or the list belongs to rows other than those of the training.
    """
    path = beside(model)
    if not path.exists():
        raise InputError(
            f"{model} holds hashes of words and not the words, and there is no list of them, {path}: name a file with "
            "a word per line, or train with --keep-words."
        )
    found = read_terms(path, info)
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = next(csv.reader(file))
    if head[len(HEAD) :] and head[-1] != mark(info):
        raise InputError(
            f"{path} lists the words of other rows than {model} was trained on: train with --keep-words again, or name "
            "the list to use it all the same."
        )
    return found


def mark(info: ModelInfo) -> str:
    """Return the mark in the head of a list that identifies the rows of a training."""
    return f"sha256={info.training.get('data_sha256')}"


def read_terms(path: Path, info: ModelInfo) -> Terms:
    """Return the terms of a list: a table as `Lexicon.as_csv` writes it, or else a word, pair or text per line.

    Raises:
        InputError: there is no such file, it is not text, it is too large, or a row is not a term with its count.
    """
    text = read_text(path, MOST_BYTES, "The list of words")
    if not text.startswith(",".join(HEAD)):
        found = counted(info, text.splitlines())
    else:
        found = _of_table(csv.reader(io.StringIO(text)), path)
    if not any(terms for kind, terms in found.of_kind.items() if kind != "piece"):
        raise InputError(f"{path} holds no words; write one a line.")
    return found


def _of_table(rows: Iterator[list[str]], path: Path) -> Terms:
    next(rows)
    found, named = _nothing(), {str(kind): kind for kind in KINDS}
    for number, row in enumerate(rows, 2):
        kind, term, count = row[:3] if len(row) >= len(HEAD) else ("", "", "")
        if kind == COLUMN:
            continue
        if not _is_term(kind, term) or not (count.isascii() and count.isdigit()):
            raise InputError(
                f"{path}, line {number}: {','.join(row[:3])[:60]!r} is not a kind ({', '.join(KINDS)}), a term of it "
                "and its count; write the list again with textcls train --keep-words."
            )
        found[named[kind]][term] = int(count)
    return Terms(found)


def _is_term(kind: str, term: str) -> bool:
    if kind == "piece":
        return bool(term)
    parts = term.split(" ")
    sizes: dict[str, int] = {"word": 1} | {str(name): size for name, size in SEQUENCES.items()}
    if len(parts) != sizes.get(kind):
        return False
    if kind != "word":
        parts = parts[parts[0] == START : len(parts) - (parts[-1] == END)]
    return bool(parts) and all(tokenizer.tokenize(part) == [part] for part in parts)


def _pieces(word: str, config: FeatureConfig) -> Iterator[str]:
    """Yield the pieces of a word except the whole word, which is either known by itself or not at all."""
    cut = word[: config.max_chars]
    if len(word) == 1:
        return
    framed = FIRST + cut + LAST
    for n in config.ngram_sizes:
        for first in range(len(framed) - n + 1):
            piece = framed[first : first + n]
            if piece != framed:
                yield piece


def _forget(counter: Counter[str], most: int) -> int:
    """Keep the more frequent half of the counter if it is too large; return how many are dropped."""
    if len(counter) <= most:
        return 0
    kept, size = dict(counter.most_common(most // 2)), len(counter)
    counter.clear()
    counter.update(kept)
    return size - len(kept)
