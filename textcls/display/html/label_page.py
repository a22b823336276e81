"""The page of `textcls label`, as files."""

from html import escape
from typing import Final

from textcls.display.html.fragments import ASSETS
from textcls.display.html.site import POLICY

__all__ = ["POLICY", "files"]

_SHARED: Final = ("explanation.css", "page.css", "icon.svg", "dom.mjs", "explain.mjs")
_OWN: Final = ("label.css", "label.mjs", "label_choice.mjs", "label_progress.mjs")


def files() -> dict[str, bytes]:
    """Return the files of the page by their paths."""
    index = (ASSETS / "label.html").read_text(encoding="utf-8").replace("POLICY", escape(POLICY))
    return {"index.html": index.encode()} | {f"page/{name}": (ASSETS / name).read_bytes() for name in (*_SHARED, *_OWN)}
