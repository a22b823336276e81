"""The clusters of texts as a fragment: one line each, and below each its words and examples."""

from collections.abc import Sequence
from html import escape
from typing import Final

from textcls.display.html.fragments import bar, fragment, heads, isolated, name, shown, table, tables
from textcls.display.remarks import agreement_line, cluster_summary_line, telling_words
from textcls.display.text import one_line, percent, signed
from textcls.explain.clusters.survey import Cluster, ClusterSurvey, Example
from textcls.explain.global_explanation.summary import TermAttribution

# Hues that are far apart: the golden angle, in degrees.
GOLDEN: Final = 137.508
WORDS: Final = 6
# This many clusters are unfolded.
OPEN: Final = 3

_STYLE: Final = (
    ".textcls .dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.4em}"
    ".textcls .clusters td{white-space:nowrap}.textcls .clusters .bar{min-width:4rem}"
    ".textcls .clusters .left{white-space:normal;padding-left:.7rem}"
    ".textcls .clusters .words{text-align:start;white-space:normal;min-width:11rem;padding-left:1.2rem}"
    ".textcls .texts{margin:.3rem 0 1rem;padding-left:1.2rem}.textcls .texts li{margin:.25rem 0}"
    ".textcls .texts small{color:var(--faint);margin-left:.5em}"
)


def clusters_fragment(title: str, found: ClusterSurvey) -> str:
    """Return the clusters that a model puts texts into."""
    parts = [f"<style>{_STYLE}</style><h2>{shown(title)}</h2>", f"<p>{shown(cluster_summary_line(found))}</p>"]
    if found.agreement is not None:
        parts.append(f"<p>{shown(agreement_line(found.agreement))}</p>")
    parts.append(_overview(found))
    parts += [_cluster(i, cluster) for i, cluster in enumerate(found.clusters) if cluster.texts]
    parts.append(
        '<p class="note">Evidence is what a word added for the cluster against all others, in logits, summed over all '
        "texts. Exact accounting of this model's answers, not a claim about causes.</p>"
    )
    return fragment(parts)


def colour(number: int) -> str:
    """Return the colour of a cluster: neighbours in size are far apart in hue."""
    return f"hsl({number * GOLDEN % 360:.0f} {(70, 55, 85)[number % 3]}% {(48, 60, 38)[number // 3 % 3]}%)"


# The clusters


def _overview(found: ClusterSurvey) -> str:
    label = heads("label", kind="left") if found.agreement is not None else ""
    largest = max((cluster.share for cluster in found.clusters), default=1.0) or 1.0
    rows = []
    for i, cluster in enumerate(found.clusters):
        matched = f'<td class="left">{name(cluster.matched or "-")}</td>' if label else ""
        rows.append(
            f'<tr><th scope="row">{_dot(i)}{name(cluster.name)}</th>{bar(cluster.share / largest, 0)}'
            f"<td>{cluster.texts:,}</td><td>{percent(cluster.share)}</td><td>{cluster.score:.2f}</td>{matched}"
            f'<td class="words">{escape(", ".join(telling_words(cluster, WORDS)))}</td></tr>'
        )
    named = heads("cluster") + heads("texts", columns=2) + heads("share", "score") + label + heads("words")
    return table(named, rows, "findings clusters")


def _dot(number: int) -> str:
    return f'<i class="dot" style="background:{colour(number)}"></i>'


def _cluster(number: int, cluster: Cluster) -> str:
    examples = "".join(map(_example, cluster.examples))
    words = tables(_terms(head, terms) for head, terms in (("words", cluster.words), ("pairs", cluster.pairs)))
    return (
        f"<details{' open' if number < OPEN else ''}><summary>{_dot(number)}<b>{name(cluster.name)}</b> "
        f"{cluster.texts:,} texts</summary>"
        f'<ul class="texts">{examples}</ul>{words}</details>'
    )


def _example(example: Example) -> str:
    return f'<li dir="auto">{isolated(one_line(example.text))}<small>{example.score:.2f}</small></li>'


def _terms(head: str, terms: Sequence[TermAttribution]) -> tuple[str, list[str]]:
    strongest = max((term.evidence for term in terms), default=1.0)
    return heads(head) + heads("evidence", columns=2) + heads("count"), [
        f'<tr><th scope="row">{name(term.text)}</th>{bar(term.evidence / strongest, 0)}'
        f"<td>{signed(term.evidence, 1)}</td><td>{term.count:,}</td></tr>"
        for term in terms
    ]
