"""The texts of a pre-training: read from files of any format, a bounded sample without copies, some held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from textcls.data import BadRows, ReadOptions, no_rows, open_tables, texts_of
from textcls.data.columns import DEFAULT_TEXT_COLUMNS
from textcls.data.memory import Readable
from textcls.errors import InputError
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts

# One text in this many is held out, and in total no more than are needed for measuring.
HELD_OUT_PART: Final = 20
MOST_HELD_OUT: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingTexts:
    """Texts to learn from, and held-out ones to measure on.

    All are distinct, in the order of their hashes; the first ones are held out, so only the texts decide.

    Attributes:
        train: texts to learn from.
        held_out: texts to measure on.
        given: how many texts there were, including copies and empty ones.
        sha256: a hash of all texts.
        text_columns: where the texts came from; several columns are joined.
    """

    train: Sequence[str]
    held_out: Sequence[str]
    given: int
    sha256: str
    text_columns: tuple[str, ...] = ("text",)

    @classmethod
    def of(cls, found: UnlabelledTexts, text_columns: Sequence[str] = ("text",)) -> Self:
        """Hold out some of the texts.

        Raises:
            InputError: there are fewer than two.
        """
        if len(found.texts) < 2:
            raise InputError("At least two different texts with a word or symbol are needed.")
        held_out = min(MOST_HELD_OUT, max(1, len(found.texts) // HELD_OUT_PART))
        return cls(
            train=found.texts[held_out:],
            held_out=found.texts[:held_out],
            given=found.given,
            sha256=found.sha256(),
            text_columns=tuple(text_columns),
        )


def read_texts(
    paths: Sequence[Readable],
    text_columns: Sequence[str] = (),
    *,
    limit: int,
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
) -> tuple[PretrainingTexts, list[str]]:
    """Read the files at `paths` row by row, and return their texts, with notes for people.

    Args:
        paths: the files.
        text_columns: the columns of the text; none for the usual ones.
        limit: how many texts are kept at most.
        options: how the files are read.
        bad: what to do with rows that cannot be used.

    Raises:
        InputError: a file cannot be read, lacks the columns, or all of them contain fewer than two texts.
    """
    with open_tables(paths, options, bad) as table:
        columns = table.choose(text_columns or DEFAULT_TEXT_COLUMNS, "text", guess=not text_columns)
        found = UnlabelledTexts.sample((UnlabelledText(text) for text, _ in texts_of(table, columns)), limit, ())
    if not found.given:
        raise no_rows(paths, bad)
    return PretrainingTexts.of(found, columns), table.notes
