"""The token rule, version 1: frozen, because every saved model depends on it.

A token is, in this order of preference,

1. one letter of a script written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar), with the marks after it;
2. a run of other letters, marks, digits and underscores (Unicode L, M, N and "_");
3. any other single character that is not white space.

White space separates tokens and is dropped; nothing else is. Only the first `LONGEST` characters of a token are read:
the graph splits all unknown words into as many characters as the longest has, and one of 40,000 with 200 others took
260 MB.
Tokens are compared in lower case, one character at a time, so that lower-casing never moves an offset. The character
classes are tables of this package, not those of the Python interpreter or of the regular-expression library at hand, so
the rule is the same on every version and platform.

The saved model applies the same rule in its ONNX graph (`graph_pattern`), after a text has been prepared (`clean`,
`shortened`); this module is its twin, for preparing training data and finding each token in the caller's text.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from textcls.model import _unicode
from textcls.model._unicode import Ranges

LONGEST: Final = 128

_LOWER: Final = dict(_unicode.LOWER)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def graph_pattern() -> str:
    """Return the token rule as an RE2 expression, for ONNX Runtime's `Tokenizer` operator."""

    def members(ranges: Ranges) -> str:
        return "".join(f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in ranges)

    word, unspaced, mark, space = map(members, (_unicode.WORD, _unicode.UNSPACED, _unicode.MARK, _unicode.SPACE))
    return f"[{word}]+|[{unspaced}][{mark}]*|[^{space}]"


def _members(ranges: Ranges) -> str:
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges)


def _run(ranges: Ranges, quantifier: str = "+") -> str:
    """Return a pattern that keeps planes apart: `re` looks up the first one in a table but scans other ranges."""
    first = _members(tuple(r for r in ranges if r[0] <= 0xFFFF))
    beyond = _members(tuple(r for r in ranges if r[0] > 0xFFFF))
    return f"(?:[{first}]{quantifier}|(?=[\U00010000-\U0010ffff])[{beyond}]){quantifier}"


_LETTER: Final = f"{_run(_unicode.UNSPACED, '')}(?:{_run(_unicode.MARK)})?"
_TOKEN: Final = re.compile(f"{_run(_unicode.WORD)}|{_LETTER}|[^{_members(_unicode.SPACE)}]")
# A letter of a script that is written without spaces.
UNSPACED: Final = re.compile(f"[{_members(_unicode.UNSPACED)}]")
# Adjacent letters of such scripts, with their marks: all of them, and two.
UNSPACED_RUN: Final = re.compile(f"(?:{_LETTER})+")
UNSPACED_PAIR: Final = re.compile(_LETTER * 2)
# The same rule for ASCII only, in a third of the time.
_ASCII_TOKEN: Final = re.compile(r"[0-9A-Za-z_]+|[^\t-\r\x1c-\x20]")

# Every longer token contains such a run, which starts only where no other continues: the search is linear and fast.
_WITHIN: Final = f"[^{_members(tuple(r for r in (*_unicode.SPACE, *_unicode.UNSPACED) if r[0] <= 0xFFFF))}]"
_LONG_RUN: Final = re.compile(f"(?<!{_WITHIN}){_WITHIN}{{{LONGEST},}}")
_LONG_ASCII_RUN: Final = re.compile(f"(?<![0-9A-Za-z_])[0-9A-Za-z_]{{{LONGEST + 1},}}")

# The kinds of ASCII characters: "a" in a word, " " between tokens, "!" a token of its own. NUL is read as a space.
_KINDS: Final = b"".join(
    b"a" if _ASCII_TOKEN.fullmatch(2 * chr(code)) else b"!" if code and _ASCII_TOKEN.fullmatch(chr(code)) else b" "
    for code in range(128)
).ljust(256)


def _token_pattern(text: str) -> re.Pattern[str]:
    return _ASCII_TOKEN if text.isascii() else _TOKEN


def clean(text: str) -> str:
    """Return `text` as models read it: same length, NUL as a space, unpaired surrogates as U+FFFD.

    A NUL would end the string for JavaScript callers of the same model, and an unpaired surrogate has no UTF-8 form.
    """
    if "\0" in text:
        text = text.replace("\0", " ")
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def shortened(text: str) -> str:
    """Return a clean text without the characters of long tokens that are not read; the number of tokens is the same."""
    if len(text) <= LONGEST or max(map(len, text.split()), default=0) <= LONGEST:
        return text
    if (_LONG_ASCII_RUN if text.isascii() else _LONG_RUN).search(text) is None:
        return text
    return _token_pattern(text).sub(lambda token: token[0][:LONGEST], text)


def is_longer(text: str, tokens: int) -> bool:
    """Return whether a text has more than `tokens` tokens."""
    return len(text) > tokens and next(islice(token_spans(text), tokens, None), None) is not None


def lower(text: str) -> str:
    """Return `text` in lower case, one character for one, by the frozen table."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def tokenize(text: str) -> list[str]:
    """Return the tokens of `text` in lower case, exactly as the ONNX graph of a saved model cuts them."""
    lowered = lower(shortened(clean(text)))
    return _token_pattern(lowered).findall(lowered)


def most_tokens(text: str) -> int:
    """Return an upper bound on the number of tokens, exact for ASCII, in a tenth of the time of finding them."""
    if not text.isascii():
        return len(text)
    kinds = text.encode().translate(_KINDS)
    return kinds.count(b"!") + kinds.count(b"!a") + kinds.count(b" a") + kinds.startswith(b"a")


def token_spans(text: str, limit: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each token, at most `limit` of them: `text[start:end]` is the token as written."""
    cleaned = clean(text)
    return islice((match.span() for match in _token_pattern(cleaned).finditer(cleaned)), limit)
