"""Hashed features of a token, version 1: frozen, because every saved model depends on them.

A token owns the rows of its word, of the two bigrams it belongs to, and of its character n-grams; if letters are
tokens, also of the three trigrams it belongs to. All hashes are 32 bits wide and made with MurmurHash3 (x86, 32 bit)
and wrap-around arithmetic, which the ONNX graph of a saved model repeats bit by bit.

    word a        MurmurHash3(a, seed = 0)
    bigram (a, b) word(a) * BIGRAM_MULTIPLIER + word(b); before a text's first token a is START, after its last
                  one b is `PADDING` (unless the text is as long as is read, or longer)
    trigram       (a, b, c): bigram(a, b) * BIGRAM_MULTIPLIER + word(c); one of START, b and c is a trigram, too
    n-gram        polynomial in NGRAM_MULTIPLIER over the characters' MurmurHash3(character, seed = CHARACTER_SEED),
                  of the token between one START and one END, cut after `max_chars` characters

A hash modulo the number of buckets is a feature's bucket; bucket 0 stands for no feature.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import mmh3
import numpy as np
from numpy.typing import NDArray

from textcls.errors import ConfigError

Uint32 = NDArray[np.uint32]

BIGRAM_MULTIPLIER: Final = 0x9E3779B1
NGRAM_MULTIPLIER: Final = 0x85EBCA6B
CHARACTER_SEED: Final = 101
START: Final = 0x3C3C3C3C
# After the end of a token the graph sees `PADDING`, which no token contains, so its hash is the end mark.
PADDING: Final = " "
END: Final = mmh3.hash(PADDING, CHARACTER_SEED, signed=False)
# Number of tokens of a text that a model reads by default.
MAX_TOKENS: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureConfig:
    """Which rows a token owns.

    Attributes:
        bigrams: whether a token owns half of each bigram it is part of.
        ngram_sizes: lengths of the character n-grams, in characters including `START` and `END`; empty for none.
        max_chars: number of characters from the start of a token that n-grams cover.
        trigrams: whether a token owns a third of each trigram it is part of, and views with n-grams also read bigrams
            and trigrams: if a token is a letter, they are what n-grams are in other scripts.
    """

    bigrams: bool = True
    ngram_sizes: tuple[int, ...] = ()
    max_chars: int = 12
    trigrams: bool = False

    def __post_init__(self) -> None:
        if any(not 2 <= n <= 8 for n in self.ngram_sizes) or tuple(sorted(set(self.ngram_sizes))) != self.ngram_sizes:
            raise ConfigError(
                f"n-gram sizes must be different numbers from 2 to 8 in rising order, not {self.ngram_sizes}."
            )
        if not 2 <= self.max_chars <= 1000:  # RE2 can repeat at most 1000 times.
            raise ConfigError(f"max_chars must be 2 to 1000, not {self.max_chars}.")
        if self.trigrams and not self.bigrams:
            raise ConfigError("There are no trigrams without bigrams.")

    def views(self) -> tuple["FeatureConfig", ...]:
        """Split into the views that the model reads in parallel: words with bigrams, and words with n-grams if any.

        With trigrams both read bigrams and trigrams.
        """
        words = replace(self, ngram_sizes=())
        return (words, replace(self, bigrams=self.trigrams)) if self.ngram_sizes else (words,)

    @property
    def orders(self) -> tuple[int, ...]:
        """The lengths of token sequences of which a token owns its share, in ascending order: 2 for bigrams."""
        return (2, 3) if self.trigrams else (2,) if self.bigrams else ()

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, with the field for trigrams only if there are any."""
        return {name: value for name, value in asdict(self).items() if value or name != "trigrams"}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "FeatureConfig":
        """Read the result of `to_json`.

        Raises:
            ConfigError: it is not a configuration.
        """
        fields = {"trigrams": False, **fields}
        kinds = {"bigrams": bool, "ngram_sizes": list, "max_chars": int, "trigrams": bool}
        sizes = fields.get("ngram_sizes")
        # By `type`, since for `isinstance` True is an int.
        right = {name: type(value) for name, value in fields.items()} == kinds
        if not right or any(type(size) is not int for size in sizes or ()):
            raise ConfigError(
                f"features must be {', '.join(f'{name} ({kind.__name__})' for name, kind in kinds.items())}."
            )
        return cls(**{**fields, "ngram_sizes": tuple(fields["ngram_sizes"])})


def word_hashes(tokens: Sequence[str]) -> Uint32:
    """Return the word hash of each token."""
    return np.array([mmh3.hash(token, 0, signed=False) for token in tokens], np.uint32)


def end_hash() -> int:
    """Return the word hash after the last token of a text."""
    return mmh3.hash(PADDING, 0, signed=False)


def bigram_hashes(left: Uint32, right: Uint32) -> Uint32:
    """Return the hashes of the bigrams (left, right), given the word hash of each."""
    return left * np.uint32(BIGRAM_MULTIPLIER) + right


def _character_hashes(text: str) -> Uint32:
    """Return the hash of each character."""
    number = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    seen = np.flatnonzero(np.bincount(number))
    hash_of = np.zeros(int(number.max(initial=0)) + 1, np.uint32)
    hash_of[seen] = [mmh3.hash(chr(character), CHARACTER_SEED, signed=False) for character in seen.tolist()]
    return hash_of[number]


def ngram_hashes(tokens: Sequence[str], config: FeatureConfig) -> tuple[Uint32, NDArray[np.bool_]]:
    """Return the n-gram hashes of each token and which of them exist, both of shape [tokens, n-grams].

    A token of one character has none: it is its own word.
    """
    if not config.ngram_sizes:
        return np.zeros((len(tokens), 0), np.uint32), np.zeros((len(tokens), 0), np.bool_)
    cut = [token[: config.max_chars] for token in tokens]
    length = np.fromiter(map(len, cut), np.int64, len(cut))[:, None]
    width = config.max_chars + config.ngram_sizes[-1]
    codes = np.full((len(tokens), width), END, np.uint32)
    codes[:, 0] = START
    codes[:, 1 : config.max_chars + 1][np.arange(config.max_chars) < length] = _character_hashes("".join(cut))

    grams, exist = [], []
    rolling = codes
    for n in range(2, config.ngram_sizes[-1] + 1):
        rolling = rolling[:, :-1] * np.uint32(NGRAM_MULTIPLIER) + codes[:, n - 1 :]
        if n in config.ngram_sizes:
            first = np.arange(config.max_chars + 3 - n)
            grams.append(rolling[:, : len(first)])
            exist.append((first + n <= length + 2) & (length > 1))
    return np.concatenate(grams, 1), np.concatenate(exist, 1)
