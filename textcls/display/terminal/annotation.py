"""Messages about texts that language models answer: their cost, their agreement, and what was left out."""

from collections.abc import Sequence

from textcls.annotation.journal import Answers
from textcls.annotation.panel import Agreement, Annotator, is_answered
from textcls.annotation.price import Price, Tokens, estimate
from textcls.annotation.prompt import Prompt
from textcls.display.text import percent, plural
from textcls.evaluation.intervals import share


def what_answers_take(
    prompt: Prompt, models: Sequence[tuple[Answers, Price | None]], texts: Sequence[str], samples: int
) -> str:
    """Return the cost of the missing answers, as far as it can be estimated.

    Args:
        prompt: what is asked.
        models: the answers of each model, and the price of its tokens.
        texts: all texts, as sent.
        samples: how often each model answers a text.
    """
    distinct = dict.fromkeys(texts)
    asked, read, written, dollars = set[str](), 0, 0, 0.0
    for answers, price in models:
        kept = ((text, answers.get(text)) for text in distinct)
        known = [(text, answer) for text, answer in kept if answer is not None and is_answered(answer)]
        missing = list(distinct.keys() - dict(known).keys())
        took = estimate(prompt, missing, known, samples=samples)
        asked.update(missing)
        read, written = read + took.read, written + took.written
        dollars += took.dollars(price) if price is not None else 0
    cost = f", some {_price(dollars)}" if any(price for _, price in models) else ""
    return (
        f"{plural(len(asked), 'text')} to ask about, {len(distinct) - len(asked):,} answered already: about {read:,} "
        f"tokens to read and {written:,} to write{cost}."
    )


def agreement_with_rows(found: Agreement, rows: int, *, by: str = "") -> str:
    """Return how far a model agrees with this many labelled rows."""
    line = f"Labelled rows{by}: {_shares(found, 'answered as labelled')}"
    return f"{line}{_without(rows - found.rows)}."


def agreement_of_models(first: str, second: str, found: Agreement) -> str:
    """Return how far two models agree."""
    return f"{first} and {second}: {_shares(found, 'answered alike')}."


def _shares(found: Agreement, how: str) -> str:
    interval = share(found.right, found.rows)
    line = (
        f"{found.right:,} of {found.rows:,} {how}, {percent(interval.value)} (95 % interval {percent(interval.low)} to "
        f"{percent(interval.high)})"
    )
    if found.right == found.rows or not found.by_label:
        return line
    label, (right, rows) = min(found.by_label.items(), key=lambda one: (one[1][0] / one[1][1], -one[1][1]))
    return f"{line}; least of {label!r}, {right:,} of {rows:,}"


def _without(rows: int) -> str:
    return f"; {rows:,} without an answer" if rows else ""


def cost_of_answers(answers: Sequence[tuple[Tokens, float, Price | None]], texts: int) -> str:
    """Return the cost of answers to a thousand texts, judged by the given ones: tokens, seconds, dollars."""
    tokens = sum(took.read + took.written for took, _, _ in answers)
    seconds = sum(seconds for _, seconds, _ in answers)
    line = f"A thousand texts took {1000 * tokens / texts:,.0f} tokens"
    if seconds:
        line += f", {1000 * seconds / texts:,.0f} seconds one after another"
    if any(price for _, _, price in answers):
        dollars = sum(took.dollars(price) for took, _, price in answers if price is not None)
        line += f" and {_price(1000 * dollars / texts)}"
    return f"{line}."


def rows_without_answers(annotators: Sequence[Annotator], texts: Sequence[str], missing: int) -> list[str]:
    """Return why this many of the texts, one per row, have no answer."""
    without = {text for one in annotators for text in one.missing(texts)}
    why = {text: why for one in annotators for text, why in one.refused.items()}
    refused = why.keys() - without
    rows_refused, unasked = (sum(text in some for text in texts) for some in (refused, without))
    lines = []
    if none := missing - rows_refused - unasked:
        lines.append(f"{plural(none, 'answer')} named none of the labels: left out, and asked for again next time.")
    if rows_refused:
        lines.append(
            f"{plural(rows_refused, 'row')} refused by the server, or not answered to the end: left out, and asked "
            f"about again next time. Of the last one: {list(why.values())[-1]}"
        )
    if unasked:
        lines.append(
            f"{plural(unasked, 'row')} not asked about, since --max-tokens-total was spent: the same command continues "
            "with more."
        )
    return lines


def _price(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.01 or not dollars else "less than $0.01"
