"""Which texts have which answers, and which are copies of each other."""

from collections import Counter, deque
from collections.abc import Sequence

from textcls.evaluation.data_quality.duplicates import near
from textcls.labelling.answers import Annotation


def matched(texts: Sequence[str], answers: Sequence[Annotation]) -> dict[int, Annotation]:
    """Return the answers to texts by number: that in the answer if it matches, else that of the same text."""
    rows: dict[str, deque[int]] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text, deque()).append(row)
    found: dict[int, Annotation] = {}
    for answer in answers:
        if answer.row is not None and answer.row < len(texts) and texts[answer.row] == answer.text:
            found[answer.row] = answer
            continue
        free = rows.get(answer.text, deque())
        while free and free[0] in found:
            free.popleft()
        if free:
            found[free.popleft()] = answer
    return found


def one_of_each(texts: Sequence[str], answers: Sequence[Annotation]) -> set[int]:
    """Return the first of each group of near copies unless a copy has an answer; and all texts with an answer."""
    found = set(matched(texts, answers))
    seen = {near(answer.text) for answer in answers}
    for row, text in enumerate(texts):
        if text.strip() and (key := near(text)) not in seen:
            seen.add(key)
            found.add(row)
    return found


def labels_of_copies(answers: Sequence[Annotation]) -> dict[int, Counter[str]]:
    """Return how often near copies have each label."""
    found: dict[int, Counter[str]] = {}
    for answer in answers:
        found.setdefault(near(answer.text), Counter()).update(answer.labels)
    return found
