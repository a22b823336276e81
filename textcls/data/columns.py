"""Which column is the text, and which the label: the one asked for, or one with the usual or a well-known name."""

import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from itertools import count, takewhile
from typing import Final, Literal

from textcls.errors import InputError
from textcls.model.label_paths import MOST_LEVELS, label_columns

Kind = Literal["text", "label"]
DEFAULT_TEXT_COLUMNS: Final = ("text",)
DEFAULT_LABEL_COLUMN: Final = "label"
# The columns of `textcls annotate`: a model's answer, who gave it, and (as a prefix) the probability of a label.
ANSWER: Final = "answer"
ANSWERED_BY: Final = "answered_by"
PROBABILITY: Final = "p_"
# Characters of a name that messages show.
LONGEST_NAME: Final = 40
# Compared in lower case, without punctuation and spaces: `Class Index` is `classindex`.
_TITLES: Final = ("title", "subject", "headline")
_BODIES: Final = ("body", "content", "description", "message", "abstract", "text")
TEXT_NAMES: Final = {
    *("text", "texts", "sentence", "content", "message", "review", "reviewtext", "body", "comment", "commenttext"),
    *("tweet", "utterance", "document", "question", "query", "post", "description", "headline", "title", "subject"),
    *("nachricht", "anliegen", "beschreibung", "kommentar", "texte", "commentaire", "texto", "mensaje", "comentario"),
}
_LABELS: Final = {
    *("label", "labels", "class", "classname", "classindex", "classlabel", "category", "target", "sentiment", "intent"),
    *("topic", "tag", "queue", "labeltext", "labelname", "polarity"),
    *("kategorie", "klasse", "thema", "catégorie", "classe", "categoría", "categoria", "clase", "etiqueta", "tema"),
}


def choose(
    file: str, columns: Sequence[str], wanted: Sequence[str], kind: Kind, *, guess: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of `kind`, and a note if they were guessed; a label column may name the levels of a tree.

    Args:
        file: name of the file, for messages.
        columns: the columns of the file.
        wanted: the columns asked for, or the usual ones.
        kind: what they contain.
        guess: whether columns with well-known names may be used instead, because `wanted` was not asked for.

    Raises:
        InputError: the file lacks the columns, and has none or several others that may be meant.
    """
    names = [one for name in wanted for one in label_columns(name, columns)] if kind == "label" else wanted
    if len(names) > MOST_LEVELS:
        raise InputError(f"The label column names {len(names)} levels, and {MOST_LEVELS} are the most that are read.")
    missing = next((name for name in names if name not in columns), None)
    if missing is None:
        return tuple(wanted), ()
    if kind == "text" and not guess and None not in (folded := [_of_lines(name, columns) for name in wanted]):
        return tuple(name for name in folded if name is not None), ()
    # Otherwise a model that was trained on two columns would take one of them for the whole text,
    # and one level of a tree would be taken for the path.
    known = well_known(columns, kind) if guess else []
    found = [one for one in known if len(one) >= len(wanted) and (kind == "text" or not {*one} & {*names})]
    if len(found) == 1:
        shown = " and ".join(map(repr, found[0]))
        verb = "is" if len(found[0]) == 1 else "are"
        return found[0], (f"{file} has no column {missing!r}; {shown} {verb} read as the {kind}.",)
    have = f"{file} has no column {missing!r}; it has {', '.join(map(_short, columns))}."
    if found:
        several = " or ".join(" and ".join(map(repr, names)) for names in found)
        raise InputError(f"{have} Choose {several} with --{kind}-column.")
    if close := get_close_matches(missing, columns, 1):
        raise InputError(f"{have} Did you mean {_meant(close[0], columns, kind)}?")
    # A name of several words, or of punctuation alone, looks more like a text than like a name.
    row = any(len(name.split()) > 1 or not re.search(r"\w", name) for name in columns)
    advice = (
        "If line 1 is a row, add --no-header, or --format lines if each is a text; if it is a title, remove it."
        if row
        else ""
    )
    if file.lower().endswith(".xlsx"):
        advice = (
            "If the table is on another sheet, add --sheet; if rows stand above the names of its columns, remove them; "
            "if it has no names, add --no-header."
        )
    raise InputError(f"{have} Choose with --{kind}-column. {advice}".rstrip())


def numbered(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """Return which of the columns were called `name` in the file, if there are several."""
    found = tuple(takewhile(columns.__contains__, (f"{name} {number}" for number in count(1))))
    return found if len(found) > 1 else ()


def _meant(name: str, columns: Sequence[str], kind: Kind) -> str:
    """Return a column as a question names it: of those that shared a name all, if they hold labels, or the first."""
    shared = re.sub(r" \d+$", "", name)
    twins = numbered(shared, columns)
    if twins and kind == "label":
        return f"{shared!r}, which has the labels of all {len(twins)}"
    return repr(twins[0] if twins else name)


def _of_lines(name: str, columns: Sequence[str]) -> str | None:
    """Return the column of that name, which may span several lines; None if there is none."""
    plain = " ".join(name.replace("\\n", " ").split())
    return name if name in columns else next((one for one in columns if " ".join(one.split()) == plain), None)


def _short(name: str) -> str:
    return repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def well_known(columns: Sequence[str], kind: Kind) -> list[tuple[str, ...]]:
    """Return the possible choices: the columns with well-known names; a title with a body is one choice."""
    plain = {name: re.sub(r"[\W_]", "", name.lower()) for name in columns}
    if kind == "label" and {ANSWER, ANSWERED_BY} <= {*columns}:
        return [(ANSWER,)]
    same = [name for name in columns if plain[name] == kind]
    if len(same) == 1:
        return [(same[0],)]
    names = [name for name in columns if plain[name] in (TEXT_NAMES if kind == "text" else _LABELS)]
    titles = [name for name in names if plain[name] in _TITLES]
    bodies = [name for name in names if plain[name] in _BODIES]
    if kind == "text" and len(names) == 2 and len(titles) == len(bodies) == 1:
        return [(titles[0], bodies[0])]
    return [(name,) for name in names]
