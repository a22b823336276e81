"""What has been taught to a model, for the terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from textcls.display.text import named, plural
from textcls.model.teaching import Taught, TaughtLabel
from textcls.model.teaching.teach import UNCALIBRATED


def taught_report(taught: Taught, back: Sequence[str], path: Path) -> Iterator[Text]:
    """Yield what was taught or taken back, and what can be said about it with so few examples.

    Args:
        taught: the present model.
        back: labels that were taken back.
        path: its path.
    """
    for label in back:
        left = "as it was trained" if label in taught.classifier.labels else "no longer there"
        yield Text(f"{named(label)}: {left}.")
    for one in taught.labels:
        yield Text(_sentence(one))
    yield Text(f"{path} knows {plural(len(taught.classifier.labels), 'label')}.")
    if taught.labels:
        yield Text(UNCALIBRATED, style="dim")


def _sentence(one: TaughtLabel) -> str:
    """Return what is known about a label that has been taught."""
    line = f"{named(one.label)}: {'new, ' if one.new else ''}{plural(one.examples, 'example')}."
    if one.unknown:
        line += f" Of {one.unknown} the model knows no word, so that only what is spelt alike is near to them."
    if one.found is None:
        return f"{line} A single example cannot show how well the label is told apart; add a few more."
    line += f" Left out one at a time, {one.found} of {one.asked} are found by the others"
    if one.mistaken:
        line += "; mistaken for " + ", ".join(f"{named(label)} {times}" for label, times in one.mistaken[:3])
    return f"{line}."
