"""Wrong answers by the words behind them, and those that the model was most sure of."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from textcls.evaluation.reporting.answers import RowSummary
from textcls.model.excerpts import Excerpt

# A word behind a single error is not a group; this many groups are reported, with this many examples each.
LEAST: Final = 2
GROUPS: Final = 15
EXAMPLES: Final = 3
SUREST: Final = 12


class ErrorGroup(NamedTuple):
    """Wrong answers with one label for which the same word speaks most.

    Attributes:
        word: the word, in lower case.
        answered: the label.
        errors: the number of wrong answers.
        of: how many of them have each label, the most frequent first.
        right: how many answers with this label are right with the word speaking most for them over the next label.
        examples: passages in which it occurs.
    """

    word: str
    answered: str
    errors: int
    of: tuple[tuple[str, int], ...]
    right: int
    examples: tuple[Excerpt, ...]


class SureError(NamedTuple):
    """A wrong answer of high confidence: a mistake in the model, or in the label.

    Attributes:
        row: its number, from 0.
        text: the text of the row.
        right: the label that it carries.
        answered: the answer.
        confidence: its probability.
        words: those that speak most for the answer over the label.
        place: start and end of the first that occurs in the text; both 0 if none does.
    """

    row: int
    text: str
    right: str
    answered: str
    confidence: float
    words: tuple[str, ...]
    place: tuple[int, int]


def groups(answers: Iterable[RowSummary], right: Iterable[str]) -> tuple[ErrorGroup, ...]:
    """Return the groups of errors, the largest first.

    Args:
        answers: the answer to each row.
        right: the label that it carries.
    """
    wrong: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    hits = Counter[tuple[str, str]]()
    examples: defaultdict[tuple[str, str], list[Excerpt]] = defaultdict(list)
    for answer, label in zip(answers, right, strict=True):
        if not answer.words or answer.example is None:
            continue
        key = (answer.words[0], answer.label)
        if answer.label == label:
            hits[key] += 1
            continue
        wrong[key][label] += 1
        if len(examples[key]) < EXAMPLES:
            examples[key].append(answer.example)
    found = [
        ErrorGroup(word, label, of.total(), tuple(of.most_common()), hits[word, label], tuple(examples[word, label]))
        for (word, label), of in wrong.items()
        if of.total() >= LEAST
    ]
    return tuple(sorted(found, key=lambda group: (-group.errors, group.right, group.word, group.answered))[:GROUPS])


def surest(
    rows: Sequence[str], answers: Sequence[RowSummary], right: Sequence[str], text_of: Callable[[str], str]
) -> tuple[SureError, ...]:
    """Return the wrong answers of the highest confidence."""
    wrong = [i for i, answer in enumerate(answers) if answer.label != right[i]]
    chosen = sorted(wrong, key=lambda i: (-answers[i].confidence, i))[:SUREST]
    told = [(i, answers[i]) for i in chosen]
    return tuple(
        SureError(i, text_of(rows[i]), right[i], one.label, one.confidence, one.words, one.place) for i, one in told
    )
