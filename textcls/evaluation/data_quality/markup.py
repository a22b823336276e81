"""HTML in texts: whether they contain any, and the same texts without it.

What may be literal text stays: `a < b`, `<name>`, and if nothing else is HTML `<time>` or `<address>`, which may be
placeholders; a text that mentions `&lt;br&gt;` keeps that.
"""

import html
import re
from typing import Final

# Elements, including obsolete ones, whose names hardly occur in angle brackets otherwise; below, all elements.
_PLAIN: Final = (
    "a|b|blockquote|body|br|center|code|dd|div|dl|dt|em|font|h[1-6]|hr|html|i|iframe|img|li|meta|ol|p|pre|span|strong|"
    "sub|sup|table|tbody|td|th|thead|tr|u|ul"
)
_ALL: Final = (
    f"{_PLAIN}|abbr|address|article|aside|audio|base|bdi|bdo|big|button|canvas|caption|cite|col|colgroup|data|del|"
    "details|dfn|fieldset|figcaption|figure|footer|form|head|header|input|ins|kbd|label|legend|link|main|map|mark|nav|"
    "noscript|object|option|param|picture|q|s|samp|section|select|small|source|strike|style|summary|svg|textarea|"
    "tfoot|time|title|tt|var|video|wbr|[a-z]{1,10}:[a-z]{1,30}"
)
_ATTRIBUTES: Final = (
    r"(?:\s+(?:[a-z0-9_:-]+\s*=\s*(?:\"[^\"]{0,2000}\"|'[^']{0,2000}'|[^\s\"'<>]+)"
    r"|allowfullscreen|async|checked|compact|controls|defer|disabled|hidden|multiple|noshade|nowrap|open|readonly|"
    r"required|selected))*\s*/?"
)
_ENDS: Final = rf"</(?:{_ALL})\s*>|<!doctype\s[^<>]{{0,500}}>"
# A tag with a plain name, or an end tag, shows that there is HTML; then tags with any name count.
_TELLING: Final = re.compile(rf"<(?:{_PLAIN}){_ATTRIBUTES}>|{_ENDS}", re.IGNORECASE)
_TAG: Final = re.compile(rf"<(?:{_ALL}){_ATTRIBUTES}>|{_ENDS}", re.IGNORECASE)
# These may occur within a word.
_INLINE: Final = re.compile(
    r"</?(?:a|abbr|b|big|cite|code|del|em|font|i|ins|mark|s|small|span|strike|strong|sub|sup|tt|u|wbr)\b", re.IGNORECASE
)
# Their content is not text.
_UNREAD: Final = re.compile(
    r"<!--(?:(?!<!--|-->).)*-->|<(script|style)\b[^<>]*>(?:(?!</?(?:script|style)\b).)*</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
_COMMON_ENTITY: Final = re.compile(r"&(?:amp|lt|gt|quot|nbsp|apos|#[0-9]{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_ENTITY: Final = re.compile(
    # A tag that is written out and is not markup, and entities that stand for a character.
    rf"(?P<tag>&lt;/?(?:{_ALL})\b[^<>&]{{0,200}}&gt;)|&(?:[a-z][a-z0-9]{{1,30}}|#[0-9]{{1,7}}|#x[0-9a-f]{{1,6}});",
    re.IGNORECASE,
)
_OPENED: Final = re.compile(r"&lt;([a-z][a-z0-9]*)", re.IGNORECASE)
_CLOSED: Final = re.compile(r"&lt;/([a-z][a-z0-9]*)", re.IGNORECASE)
_SPACES: Final = re.compile(r"[ \t\xa0]{2,}")
# Number of passes, for text that was escaped more than once.
_ROUNDS: Final = 3


def holds_html(text: str) -> bool:
    """Return whether a text contains HTML tags or entities."""
    return ("<" in text and _TELLING.search(text) is not None) or (
        "&" in text and _COMMON_ENTITY.search(text) is not None
    )


def without_html(text: str) -> str:
    """Return a text without tags, its entities replaced by their characters; unchanged if it has neither."""
    found = text
    for _ in range(_ROUNDS):
        if not holds_html(found) and not _UNREAD.search(found):
            break
        found = _UNREAD.sub(" ", found)
        if _TELLING.search(found):
            found = _TAG.sub(lambda tag: "" if _INLINE.match(tag[0]) else " ", found)
        # A text may be escaped as a whole, or mention tags: then it contains no pair of them, and they stay.
        is_escaped = bool({*_OPENED.findall(found.lower())} & {*_CLOSED.findall(found.lower())})
        found = _ENTITY.sub(_sign if is_escaped else _sign_beside_tags, found)
    return text if found == text else _SPACES.sub(" ", found).strip()


def _sign(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _sign_beside_tags(entity: re.Match[str]) -> str:
    return entity[0] if entity["tag"] else html.unescape(entity[0])
