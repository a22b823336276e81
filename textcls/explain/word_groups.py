"""Groups of words that may replace each other: a user's file, and the places of such words in texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from textcls._util.text_file import read_text
from textcls.errors import InputError
from textcls.explain.intervention import Span
from textcls.model import tokenizer


class Term(tuple[str, ...]):
    """A word or several consecutive ones, as tokens in lower case; if from a file, also as written there."""

    written: str = ""

    @classmethod
    def of(cls, word: str) -> "Term":
        """Return the tokens of a word as spelt in a file."""
        found = cls(tokenizer.tokenize(word))
        found.written = word.strip()
        return found

    def __str__(self) -> str:
        """Return the word as it is written."""
        return self.written or " ".join(self)


Groups = Sequence[tuple[Term, ...]]
MOST_BYTES: Final = 1_000_000
MOST_TERMS: Final = 1_000
MOST_IN_GROUP: Final = 50


def read_groups(path: Path) -> list[tuple[Term, ...]]:
    """Return the groups of a file: one per line, its words separated by commas; what follows a `#` is a note.

    Raises:
        InputError: there is no such file, it is not text, too large, or a line has fewer than two different words.
    """
    lines = read_text(path, MOST_BYTES, "The list of words").splitlines()
    groups = []
    for number, line in enumerate(lines, 1):
        meant = line.partition("#")[0]
        if not meant.strip():
            continue
        terms = tuple(dict.fromkeys(term for word in meant.split(",") if (term := Term.of(word))))
        if not 2 <= len(terms) <= MOST_IN_GROUP:
            raise InputError(
                f"{path}, line {number}: {len(terms)} different; write 2 to {MOST_IN_GROUP} words with commas between "
                "them, as in: he, she"
            )
        groups.append(terms)
    if not groups:
        raise InputError(f"{path} holds no words; write a group of words a line, as in: he, she")
    if sum(map(len, groups)) > MOST_TERMS:
        raise InputError(f"{path} holds more than {MOST_TERMS:,} words; take the most important ones.")
    return groups


def runs(text: str, spans: Sequence[Span], term: Term) -> Iterator[int]:
    """Yield the numbers of the tokens at which `term` begins, without overlapping occurrences.

    Args:
        text: the text.
        spans: the spans of its tokens.
        term: words in lower case.
    """
    lowered = tokenizer.lower(tokenizer.clean(text))
    tokens = [lowered[start:end] for start, end in spans]
    at = 0
    while at + len(term) <= len(tokens):
        if tuple(tokens[at : at + len(term)]) == term:
            yield at
            at += len(term)
        else:
            at += 1
