"""The elements that all fragments share: their style, escaped texts, bars."""

import hashlib
from collections.abc import Iterable
from datetime import date
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Final

from textcls.display.text import named, one_line, visible
from textcls.model.excerpts import Excerpt, marked

ASSETS: Final = Path(__file__).parent / "assets"
_PAGE_STYLE: Final = (
    "body{margin:0;background:#fff}.textcls{max-width:56rem;margin:0 auto!important;padding:2rem 1.25rem!important}"
    "header.textcls{padding-bottom:0!important}header.textcls h2{margin-top:0}header+.textcls{padding-top:0!important}"
    "@media(prefers-color-scheme:dark){body{background:#15171c}}"
)


@cache
def style() -> str:
    """Return the rules that all fragments share, and the page of the server with them."""
    _, *rules = (ASSETS / "explanation.css").read_text(encoding="utf-8").splitlines()
    return "".join(rules)


def document(title: str, *fragments: str, about: str = "", heading: str = "") -> str:
    """Return a separate page that shows the fragments.

    Args:
        title: the title of the page.
        fragments: the content of the page.
        about: which model it is about and when it was made, in one line; empty for nothing.
        heading: a heading above that, for fragments without their own.
    """
    head = f"<h2>{shown(heading)}</h2>" if heading else ""
    header = f'<header class="textcls">{head}<p class="note">{shown(about)}</p></header>\n' if about else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        # Whatever a text contains, a browser will neither run nor fetch anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{shown(title)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>\n"
        + header
        + "\n".join(fragments)
        + "\n</body>\n</html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """Return `parts` in one box with their style: with its own background and text colour, since a notebook may be dark
    while the system is light.
    """
    return f'<div class="textcls">\n<style>{style()}</style>\n' + "\n".join(parts) + "\n</div>"


def made_of(model: Path) -> str:
    """Return which file a page is about, its version as named by services, what made the page, and the day."""
    return made_of_version(model.name, hashlib.sha256(model.read_bytes()).hexdigest()[:12])


def made_of_version(model: str, of: str) -> str:
    """Return the same for a file whose name and version are known."""
    return f"{model} ({of}), written by textcls {version('textcls')} on {date.today().isoformat()}"


def shown(text: str) -> str:
    """Return `text` visible and escaped."""
    return escape(visible(text))


def name(text: str) -> str:
    """Return a token or label as named in tables, escaped, and kept from reordering its surroundings."""
    return isolated(named(text))


def isolated(shown: str) -> str:
    """Return a text that may be shown as it is, escaped, and kept from reordering its surroundings."""
    return f"<bdi>{escape(shown)}</bdi>"


def with_mark(found: Excerpt) -> str:
    """Return an excerpt, escaped, with its word marked."""
    before, meant, behind = (escape(one_line(part)) for part in marked(found))
    return f"{before}<mark>{meant}</mark>{behind}" if meant else f"{before}{behind}"


def heads(*texts: str, kind: str = "", columns: int = 1) -> str:
    """Return column heads of a class, each over this many columns; the texts are HTML."""
    more = f' class="{kind}"' * bool(kind) + f' colspan="{columns}"' * (columns > 1)
    return "".join(f'<th scope="col"{more}>{text}</th>' for text in texts)


def table(heads: str, rows: Iterable[str], kind: str = "findings") -> str:
    """Return a table, which scrolls separately if it is wider than the page."""
    return tables([(heads, rows)], kind, head="")


def tables(parts: Iterable[tuple[str, Iterable[str]]], kind: str = "findings", head: str = "head") -> str:
    """Return several tables as one, each under its own heads; those without rows are left out."""
    shown = ((heads, "".join(rows)) for heads, rows in parts)
    of = f' class="{head}"' * bool(head)
    body = "".join(f"<tr{of}>{heads}</tr>{rows}" for heads, rows in shown if rows)
    return f'<div class="wide"><table class="{kind}">{body}</table></div>'


def bar(share: float, middle: int = 50) -> str:
    """Return a bar with this share of the space: from `middle` to the right for, left against; at 0 always right."""
    width = (100 - middle) * min(1.0, abs(share))
    side = "left" if share >= 0 or not middle else "right"
    kind = "p" if share >= 0 else "n"
    return f'<td class="bar"><i class="{kind} {side}" style="{side}:{middle}%;width:{width:.1f}%"></i></td>'
