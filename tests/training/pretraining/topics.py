"""Texts of a few topics, whose words they mostly keep to."""

import random
from collections.abc import Sequence

TOPICS = {
    "sport": "match goal team coach league season player score final trophy",
    "money": "bank loan market shares profit interest invoice budget credit fund",
    "kitchen": "oven recipe butter onion sauce dinner bake flour pepper soup",
}
COMMON = ["the", "a", "of", "and", "to", "in", "it", "was", "for", "with"]


def topic_texts(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return texts of 12 words, and the topic of each; topics take turns."""
    rng = random.Random(seed)
    names = [list(TOPICS)[i % len(TOPICS)] for i in range(count)]
    return [" ".join(_words(rng, TOPICS[name].split())) for name in names], names


def _words(rng: random.Random, own: Sequence[str]) -> list[str]:
    return [rng.choice(own if rng.random() < 0.5 else COMMON) for _ in range(12)]
