"""Short rows in any number, made from real ones: pieces of texts with edits, by a seed.

A real row in its turn gives a window of 8 to 16 of its words (all of a shorter one), its label kept. Then a word in ten
is left out, one in ten changes places with the next, and one in a hundred gets a wrong letter. So no two rows need be
the same, words that are written wrongly are new words for ever, and nothing is learned beyond the real rows.
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

SHORTEST, LONGEST = 8, 16
LEFT_OUT: Final = 0.1
SWAPPED: Final = 0.1
MISSPELT: Final = 0.01
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def window(words: Sequence[str], random: Random) -> list[str]:
    """Return some words in a row."""
    length = random.randint(SHORTEST, LONGEST)
    first = random.randint(0, max(0, len(words) - length))
    return list(words[first : first + length])


def edited(words: Sequence[str], random: Random) -> list[str]:
    """Return the words with some left out, swapped and misspelt; at least one stays."""
    kept = [word for word in words if random.random() >= LEFT_OUT] or list(words[:1])
    for i in range(len(kept) - 1):
        if random.random() < SWAPPED:
            kept[i], kept[i + 1] = kept[i + 1], kept[i]
    return [_misspelt(word, random) if random.random() < MISSPELT else word for word in kept]


def _misspelt(word: str, random: Random) -> str:
    place = random.randrange(len(word))
    return word[:place] + random.choice(LETTERS) + word[place + 1 :]


def made_rows(texts: Sequence[str], labels: Sequence[str], number: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield `number` short rows, text and label, all real rows in turn, each time in another order."""
    random = Random(seed)
    words = [text.split() for text in texts]
    order = list(range(len(texts)))
    for i in range(number):
        if i % len(order) == 0:
            random.shuffle(order)
        row = order[i % len(order)]
        yield " ".join(edited(window(words[row], random), random)), labels[row]


def held_out_rows(texts: Sequence[str], labels: Sequence[str], seed: int) -> Iterator[tuple[str, str]]:
    """Yield a window of each real row, as it is written."""
    random = Random(seed)
    for text, label in zip(texts, labels, strict=True):
        yield " ".join(window(text.split(), random)), label


def write_rows(path: Path, rows: Iterator[tuple[str, str]]) -> None:
    """Write rows to the CSV file at `path`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(rows)
