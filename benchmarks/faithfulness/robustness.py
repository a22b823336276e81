"""Does an explanation stay when the text changes in a way that people would not mind?

Each change keeps the place of every token, so that scores before and after can be compared token by token, by Kendall's
tau: two letters swapped in one word, a word replaced by a synonym, the text said twice (its first copy counts).
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from textcls.explain.intervention import Span

# (text, spans of its tokens, generator) -> changed text, None where the change does not apply
Change = Callable[[str, Sequence[Span], np.random.Generator], str | None]

SHORTEST: Final = 4
_PAIRS: Final = """
good great, bad awful, film movie, big large, small little, funny hilarious, boring dull, smart clever, fast quick,
start begin, end finish, buy purchase, help assist, happy glad, sad unhappy, angry mad, beautiful lovely, ugly hideous,
old ancient, rich wealthy, hard difficult, easy simple, strange odd, scary frightening, entire whole, wrong incorrect,
right correct, answer reply, ask inquire, show display, choose select, error mistake, problem issue, idea notion,
story tale, job occupation, children kids, woman lady, man guy, street road, car automobile, house home, picture image,
present gift, shop store, trip journey, garbage trash, near close, under below, maybe perhaps, often frequently,
almost nearly, also too, enough sufficient, whole complete, important significant, huge enormous, tiny minuscule,
terrible horrible, wonderful marvelous, stupid dumb, silent quiet, brave courageous, company firm, profit gain,
shares stocks, victory win, rise increase, fall decrease, director filmmaker, performance acting, said stated
"""


def _synonyms() -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _PAIRS.split(","):
        one, other = pair.split()
        found.setdefault(one, other)
        found.setdefault(other, one)
    return found


SYNONYMS: Final = _synonyms()


def typo(text: str, spans: Sequence[Span], generator: np.random.Generator) -> str | None:
    """Swap two neighbouring letters of one word of four letters or more, chosen by chance."""
    places = [
        [at for at in range(start, end - 1) if text[at] != text[at + 1]]
        for start, end in spans
        if end - start >= SHORTEST and text[start:end].isalpha()
    ]
    places = [swaps for swaps in places if swaps]
    if not places:
        return None
    swaps = places[int(generator.integers(len(places)))]
    at = swaps[int(generator.integers(len(swaps)))]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def synonym(text: str, spans: Sequence[Span], generator: np.random.Generator) -> str | None:
    """Replace one word that has a synonym here, chosen by chance; English alone."""
    hits = [(start, end) for start, end in spans if text[start:end].lower() in SYNONYMS]
    if not hits:
        return None
    start, end = hits[int(generator.integers(len(hits)))]
    word = SYNONYMS[text[start:end].lower()]
    return text[:start] + (word.capitalize() if text[start].isupper() else word) + text[end:]


def duplicate(text: str, _spans: Sequence[Span], _generator: np.random.Generator) -> str | None:
    """Say the text twice; the tokens of the first copy keep their places."""
    return f"{text} {text}"


CHANGES: Final[dict[str, Change]] = {"typo": typo, "synonym": synonym, "duplicate": duplicate}
