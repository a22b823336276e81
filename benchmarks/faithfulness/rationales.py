"""Read files of human rationales: one JSON object a line.

row           number of the text in the table of texts, from 0
tokens        the tokens that people saw
rationales    a list of 0/1 lists, one an annotator, a number a token; their union is the truth
token_labels  or, instead: the sentiment of each word from 0 to 4, 2 neutral; the truth are the words that speak
              for `label`, which is positive (above 2) or negative (below 2)
"""

import json
from pathlib import Path
from typing import Any

from faithfulness.plausibility import Rationale
from textcls.errors import InputError

NEUTRAL = 2


def read_rationales(path: Path) -> dict[int, Rationale]:
    """Return the rationale of each row, those without a marked token included.

    Raises:
        InputError: there is no such file, or a line is not as above.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The rationales {path} cannot be read: {error}.") from error
    found: dict[int, Rationale] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            found[int(entry["row"])] = _rationale(entry)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}, line {number}: no rationale ({type(error).__name__}: {error}); it needs row, tokens, and "
                "rationales or token_labels with label."
            ) from error
    return found


def _rationale(entry: dict[str, Any]) -> Rationale:
    tokens = tuple(str(token) for token in entry["tokens"])
    if "rationales" in entry:
        marks = entry["rationales"]
        _check_lengths(tokens, marks)
        return Rationale(tokens, tuple(any(mark[i] for mark in marks) for i in range(len(tokens))))
    sentiment, label = entry["token_labels"], entry["label"]
    _check_lengths(tokens, [sentiment])
    if label not in ("positive", "negative"):
        raise ValueError(f"label is {label!r}, and token_labels speak of positive and negative")
    speaks = [value > NEUTRAL if label == "positive" else value < NEUTRAL for value in sentiment]
    return Rationale(tokens, tuple(speaks), label)


def _check_lengths(tokens: tuple[str, ...], marks: list[list[int]]) -> None:
    for mark in marks:
        if len(mark) != len(tokens):
            raise ValueError(f"{len(mark)} marks for {len(tokens)} tokens")
