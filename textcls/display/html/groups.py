"""Two groups of texts compared, as a fragment."""

from collections.abc import Sequence

from textcls.display.html.fragments import bar, fragment, heads, name, shown, tables
from textcls.display.html.global_explanation import OPEN, example
from textcls.display.remarks import group_line, groups_lines, groups_shown
from textcls.display.text import percent, signed
from textcls.explain.global_explanation.groups import GroupComparison, TermDifference


def groups_fragment(title: str, found: GroupComparison, names: tuple[str, str]) -> str:
    """Return for each label the words that add more in one group of texts than in the other."""
    parts = [f"<h2>{shown(title)}</h2>", *(f"<p>{shown(line)}</p>" for line in groups_lines(found, *names))]
    for number, label in enumerate(groups_shown(found)):
        sides = (("Adds more in the first", label.more), ("Adds more in the second", label.less))
        parts.append(
            f"<details{' open' if number < OPEN else ''}><summary><b>{name(label.label)}</b> {shown(group_line(label))}"
            f"</summary>{tables(_terms(head, terms) for head, terms in sides)}</details>"
        )
    parts.append(
        '<p class="note">Differences are in logits; +- is their standard error. Exact accounting of this model\'s '
        "answers: the differences of all words, also of those not listed, add up to that of the label.</p>"
    )
    return fragment(parts)


def _terms(head: str, terms: Sequence[TermDifference]) -> tuple[str, list[str]]:
    largest = max((abs(term.difference) for term in terms), default=1.0)
    named = heads(head) + heads("difference", columns=2) + heads("+-", "in first", "in second", "example")
    return named, [
        f'<tr><th scope="row">{name(term.text)}</th>{bar(term.difference / largest, 0)}'
        f"<td>{signed(term.difference)}</td><td>{term.error:.3f}</td><td>{percent(term.in_first)}</td>"
        f"<td>{percent(term.in_second)}</td>{example(term.example)}</tr>"
        for term in terms
    ]
