"""Rows to ablate on: a table, cut by the hash of its texts, or a task made for what mixing alone can do."""

from typing import Final

import numpy as np

from textcls.data import Labelled
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.split import part_of_rows

# One part of so many is held out.
PARTS: Final = 5
ORDER_ROWS, ORDER_TEST_ROWS, ORDER_SEED = 4000, 2000, 2021
FIRST: Final = ("red", "blue")
WORDS_A_TEXT, VOCABULARY = 12, 200


def order_task(rows: int, seed: int) -> Labelled:
    """Return texts of 12 words, "red" and "blue" among 10 random ones; the label is the one that comes first.

    Both labels have the same words, and as often: what is not told the order of words can but guess. Pairs of
    neighbours tell it where the two stand side by side or at the edges of the text.
    """
    chance = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(rows):
        words = [f"word{n}" for n in chance.integers(VOCABULARY, size=WORDS_A_TEXT).tolist()]
        places = sorted(chance.choice(WORDS_A_TEXT, 2, replace=False).tolist())
        first = int(chance.integers(2))
        words[places[0]], words[places[1]] = FIRST[first], FIRST[1 - first]
        texts.append(" ".join(words))
        labels.append(FIRST[first])
    return Labelled(texts, labels)


def order_parts() -> tuple[Labelled, Labelled]:
    """Return the rows of the order task to train on, and those to test on."""
    return order_task(ORDER_ROWS, ORDER_SEED), order_task(ORDER_TEST_ROWS, ORDER_SEED + 1)


def hold_out(rows: Labelled) -> tuple[Labelled, Labelled]:
    """Cut a fifth of the rows off, by a hash of the text and within each label: the same rows every time."""
    part_R = part_of_rows(LabelledTexts(texts=rows.texts, labels=rows.labels), PARTS)
    held = part_R == PARTS - 1
    train, test = (
        Labelled([rows.texts[i] for i in which], [rows.labels[i] for i in which])
        for which in (np.flatnonzero(~held).tolist(), np.flatnonzero(held).tolist())
    )
    return train, test
