"""A global explanation, what was found over many texts, as plain frozen objects."""

from dataclasses import asdict, dataclass
from typing import Any

from textcls._util.in_notebooks import InNotebooks
from textcls.explain.shortcuts.audit import ShortcutAudit
from textcls.model.excerpts import Excerpt


@dataclass(frozen=True, slots=True)
class TermAttribution:
    """What a term, a word or two neighbouring words together, contributed for a label over many texts.

    Attributes:
        text: the word or the pair, in lower case.
        evidence: the sum of its evidence for the label over all texts; negative speaks against it.
        mean: the mean of a single occurrence.
        count: occurrences.
        example: where it contributed much of that kind.
    """

    text: str
    evidence: float
    mean: float
    count: int
    example: Excerpt


@dataclass(frozen=True, slots=True)
class DecidingWord:
    """A word that alone decides a large share of a label's answers.

    It decides an answer if the label would no longer be the most probable without all that the word contributed.

    Attributes:
        label: the label answered.
        text: the word, in lower case.
        share: `decided / answers`.
        decided: texts answered with the label that the word decides.
        holding: texts answered with the label that hold the word.
        answers: texts answered with the label.
        wrong: how many of the decided carry another label; None if the texts carry none.
        example: where it contributed much for the label.
    """

    label: str
    text: str
    share: float
    decided: int
    holding: int
    answers: int
    wrong: int | None
    example: Excerpt


@dataclass(frozen=True, slots=True)
class LabelExplanation:
    """What speaks for and against a label, strongest first, over all texts and not only over those answered with it."""

    label: str
    answers: int
    words_for: tuple[TermAttribution, ...]
    words_against: tuple[TermAttribution, ...]
    pairs_for: tuple[TermAttribution, ...]
    pairs_against: tuple[TermAttribution, ...]


@dataclass(frozen=True, slots=True)
class GlobalExplanation(InNotebooks):
    """What a model went by over many texts.

    Attributes:
        texts: how many.
        tokens: how many in all texts.
        labelled: texts that carry a label.
        right: how many of those were answered with it; with several labels, with all of them and no other.
        dropped: words and pairs that were forgotten because there were too many, the rarest first; one that came back
            counts from there. Which words an answer holds, and which decide it, is forgotten by a bound of its own and
            not counted here; from then on `holding`, `decided` and `wrong` of a word are lower bounds.
        deciding: the words that alone decide a large share of a label's answers, the worst first.
        labels: what speaks for and against each label, or each of those asked for.
        deciding_share: a word that decides more than this share of a label's answers is told as one that decides.
        mirrored: whether these are the model's only two, so that what speaks for one speaks against the other.
        several: whether a text may have several labels: then each is answered, and explained, by itself.
        audit: the shortcuts found, and what could have been; None where none were looked for.
        told_by: of columns beside the text that tell the label by themselves, a sentence each.

    Examples:
        >>> rows = [("where is my parcel", "shipping"), ("my card was charged twice", "billing")]
        >>> textcls.explain_globally(textcls.Classifier.load("tickets.onnx"), rows).texts
        2
    """

    texts: int
    tokens: int
    labelled: int
    right: int
    dropped: int
    deciding: tuple[DecidingWord, ...]
    labels: tuple[LabelExplanation, ...]
    deciding_share: float
    mirrored: bool
    several: bool = False
    audit: ShortcutAudit | None = None
    told_by: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        silent = [name for name in ("several", "told_by") if not getattr(self, name)]
        return {name: value for name, value in asdict(self).items() if name not in silent}
