"""Units of a text as people see them: words, phrases and sentences, as runs of its tokens, by rules for all scripts.

A boundary is always between two tokens, so every token is in exactly one unit, and sums over units equal those over
tokens.

A **sentence** ends

1. at a line break;
2. after a mark that only ends sentences (。 ！ ？ । ؟ and others: Unicode's Sentence_Terminal), and after `!`, `?` and
   `…` before white space;
3. after a full stop before white space, unless it follows a single letter ("J. Smith", "z. B.") or precedes a word in
   lower case ("approx. five"); in a text without capital letters the latter ends sentences as well.

Consecutive marks, and closing brackets and quotes, belong to the sentence that they close.

A **phrase** ends where a sentence does, and at every punctuation mark that is not inside a word or number: at commas,
colons, dashes, brackets, quotes. An opening bracket or quote belongs to what follows, other marks to what precedes
them. In scripts without spaces between words (Thai, Lao, Khmer, Burmese, Chinese, Japanese) a space ends one, too.

A **word** is a token, except in those scripts, where a token is a letter. There BudouX determines the words of Thai,
Chinese and Japanese; in the others they end at spaces.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, Literal, get_args
from unicodedata import category

from textcls.model import tokenizer

if TYPE_CHECKING:
    from budoux import Parser

Span = tuple[int, int]
Unit = Literal["token", "word", "phrase", "sentence"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)

# Marks that always end a sentence: Unicode's Sentence_Terminal, without those that have other uses in Latin script.
SENTENCE_ENDS: Final = frozenset(
    "\u0589\u061d\u061e\u061f\u06d4\u0700\u0701\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367"
    "\u1368\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8\u1aa9\u1aaa\u1aab\u1b5a\u1b5b\u1c3b\u1c3c\u1c7e"
    "\u1c7f\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d\uaa5e\uaa5f\uaaf0\uaaf1"
    "\uabeb\uff01\uff0e\uff1f\uff61"
)
_BEFORE_SPACE: Final = frozenset("!?\u2026\u203c\u203d\u2047\u2048\u2049")
_STOP: Final = "."
# Marks that also occur inside words and numbers.
_INNER: Final = frozenset("'\u2019-\u2010\u2011.,:/&@+\u00b7_")
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_KANA: Final = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_QUOTES: Final = frozenset("\"'\u2018\u2019\u201c\u201d\u201e\u201f")


def unit_spans(text: str, spans: Sequence[Span], unit: Unit) -> list[Span]:
    """Return the consecutive units of `text` as (first token, token after the last).

    Args:
        text: the text.
        spans: start and end of each of its tokens.
        unit: the kind of unit.
    """
    if not spans:
        return []
    if unit == "token":
        return [(i, i + 1) for i in range(len(spans))]
    ends = _word_ends(text, spans) if unit == "word" else _ends(text, spans, sentences_only=unit == "sentence")
    return list(pairwise([0, *ends, len(spans)]))


def reading_unit(text: str) -> Unit:
    """Return the smallest unit that people read: words if there are adjacent letters of scripts without spaces."""
    return "word" if tokenizer.UNSPACED_PAIR.search(text) else "token"


def _word_ends(text: str, spans: Sequence[Span]) -> list[int]:
    """Return the numbers of the tokens that start a word, except the first."""
    within = set(_within_words(text))
    return [i for i in range(1, len(spans)) if spans[i][0] not in within]


def _within_words(text: str) -> Iterator[int]:
    """Yield the positions in `text` that are inside a word of a script without spaces."""
    japanese = _KANA.search(text) is not None
    for run in tokenizer.UNSPACED_RUN.finditer(text):
        ends = set(accumulate(map(len, _words(run[0], japanese=japanese))))
        yield from (run.start() + i for i in range(1, len(run[0])) if i not in ends)


def _words(run: str, *, japanese: bool) -> Sequence[str]:
    """Return the words of a run of letters of scripts without spaces; in scripts unknown to BudouX it is one word."""
    if _THAI.search(run):
        return _parser("thai").parse(run)
    if japanese:
        return _parser("japanese").parse(run)
    if _HAN.search(run):
        return _parser("traditional_chinese" if _is_traditional(run) else "simplified_chinese").parse(run)
    return [run]


def _is_traditional(run: str) -> bool:
    """Return whether Taiwan's national character set has all characters and that of mainland China does not."""
    return _holds("big5", run) and not _holds("gb2312", run)


def _holds(encoding: str, run: str) -> bool:
    try:
        run.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _parser(language: str) -> "Parser":
    import budoux

    parser: Parser = getattr(budoux, f"load_default_{language}_parser")()
    return parser


def _ends(text: str, spans: Sequence[Span], *, sentences_only: bool) -> list[int]:
    """Return the numbers of the tokens that start a unit, except the first."""
    tokens = [text[start:end] for start, end in spans]
    has_capitals = any(map(str.isupper, text))
    found = []
    # Whether a mark that may end a sentence was just seen, perhaps followed by closing marks.
    ending = False
    for i in range(1, len(spans)):
        gap = text[spans[i - 1][1] : spans[i][0]]
        before, after = tokens[i - 1], tokens[i]
        ending = _ends_sentence(tokens, i - 1, ending, glued=_glued(text, spans, i - 1))
        if "\n" in gap or "\r" in gap or "\u2028" in gap or "\u2029" in gap:
            found.append(i)
            ending = False
        elif ending and _closes(after, text, spans[i], gap):
            continue
        elif (ending and _sentence_begins(before, after, gap, has_capitals)) or (
            not sentences_only and _phrase_ends(text, spans, i)
        ):
            found.append(i)
            ending = False
    return found


def _ends_sentence(tokens: Sequence[str], i: int, ending: bool, *, glued: bool) -> bool:
    """Return whether a sentence may end after token `i`; `ending` is whether it might have ended before it."""
    token = tokens[i]
    if token in SENTENCE_ENDS:
        return True
    if token in _BEFORE_SPACE:
        return not glued
    if token == _STOP:
        initial = i > 0 and len(tokens[i - 1]) == 1 and tokens[i - 1].isalpha()
        return ending or not (glued or initial)
    return ending and _is_mark(token)


def _sentence_begins(before: str, after: str, gap: str, has_capitals: bool) -> bool:
    """Return whether `after` starts a sentence, after a mark that may end one."""
    if before in SENTENCE_ENDS:
        return True
    if not gap:
        return False
    return before != _STOP or not has_capitals or not after[:1].islower()


def _phrase_ends(text: str, spans: Sequence[Span], i: int) -> bool:
    """Return whether a phrase ends between tokens `i - 1` and `i`."""
    if spans[i - 1][1] < spans[i][0] and _unspaced(text, spans[i - 1]) and _unspaced(text, spans[i]):
        return True
    if _is_mark(text[slice(*spans[i])]) and not _glued(text, spans, i):
        return _opens(text, spans, i)
    last = i - 1
    return _is_mark(text[slice(*spans[last])]) and not _glued(text, spans, last) and not _opens(text, spans, last)


def _unspaced(text: str, span: Span) -> bool:
    """Return whether a token belongs to a script without spaces between words."""
    return tokenizer.UNSPACED.match(text, span[0]) is not None


def _is_mark(token: str) -> bool:
    return len(token) == 1 and category(token)[0] in "PS"


def _glued(text: str, spans: Sequence[Span], i: int) -> bool:
    """Return whether the mark at `i` is inside a word or number, as in don't, 3.5 and and/or."""
    start, end = spans[i]
    if text[start:end] not in _INNER:
        return False
    return start > 0 and end < len(text) and text[start - 1].isalnum() and text[end].isalnum()


def _opens(text: str, spans: Sequence[Span], i: int) -> bool:
    start, end = spans[i]
    mark = text[start:end]
    if category(mark) in ("Ps", "Pi"):
        return True
    before_word = end < len(text) and not text[end].isspace()
    return mark in _QUOTES and before_word and (start == 0 or text[start - 1].isspace())


def _closes(token: str, text: str, span: Span, gap: str) -> bool:
    """Return whether a token still belongs to the sentence that has just ended."""
    if token in SENTENCE_ENDS or token in _BEFORE_SPACE or token == _STOP:
        return not gap
    if not _is_mark(token) or gap:
        return False
    return category(token) in ("Pe", "Pf") or token in _QUOTES
