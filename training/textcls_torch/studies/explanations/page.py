"""A measurement as one HTML page: tables, plots, example texts; nothing is loaded from anywhere, no script runs."""

from collections.abc import Sequence
from html import escape
from typing import Final

from textcls_torch.studies.explanations import plots
from textcls_torch.studies.explanations.methods import LIME_SAMPLES, SHAP_CALLS
from textcls_torch.studies.explanations.removal import MASK, SEEN_IN_TRAINING
from textcls_torch.studies.explanations.report import GROUPS, Grid, comparison_grids, grids, notes
from textcls_torch.studies.explanations.results import BenchmarkResult, ExplainedExample

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# As everywhere: told apart by people who do not tell red from green.
FOR, AGAINST = "29, 100, 220", "209, 84, 0"
_CSS: Final = """
:root { color-scheme: light dark; --ink: #1d2330; --paper: #ffffff; --line: #d5d9e0; --soft: #5b6474; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --paper: #14171d; --line: #343a46; --soft: #9aa4b5; } }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .86rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th { max-width: 9rem; vertical-align: bottom; } td { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.better { color: #3b82f6; } .worse { color: #d96a16; } .soft, figcaption { color: var(--soft); }
figure { margin: 1rem 0; } svg { max-width: 100%; height: auto; } figcaption { font-size: .86rem; }
.example { white-space: pre-wrap; overflow-wrap: anywhere; } .example span { border-radius: .2rem; padding: .05rem 0; }
dt { color: var(--soft); font-size: .86rem; margin-top: .4rem; } dd { margin: 0; }
"""
_VERDICTS: Final = (
    "better, worse: the 95 % interval of the paired difference lies on one side of 0. Nothing is corrected for the "
    "number of comparisons, and where tokens are deleted leave-one-out agrees with itself by construction."
)
_METHODS: Final = """
<p>Comprehensiveness is how far the probability of the answer falls when the best-scored tokens are removed;
sufficiency, how far it falls when they alone are kept: the lower the better, and below zero where the rest had spoken
against it. Both are means over the top 1, 5, 10, 20 and 50 % of the tokens, at least one (ERASER, DeYoung et al.
2020). ferret's variant takes tokens of positive score alone, from 10 to 100 %; the two are not comparable. Divided by
the change from the empty to the whole text they can be compared between models; texts whose change is 0.1 or less are
left out of that. Tau is Kendall's tau-b. All methods explain the same saved model and the same texts.</p>
"""


def require() -> None:
    """Find out before the work whether a page can be made.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    plots.require()


def render(result: BenchmarkResult) -> str:
    """Return the page."""
    title = f"How good are the explanations of {result.model}?"
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(note)}</p>" for note in notes(result)), *_sections(result)]
    return document(title, body)


def document(title: str, body: Sequence[str]) -> str:
    """Return a page of these elements that loads nothing from anywhere and runs no script."""
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _sections(result: BenchmarkResult) -> list[str]:
    found = [_table(grid) for grid in grids(result)]
    first = result.removals[0]
    found.append("<h2>Plots</h2>")
    for removal in result.removals:
        caption = f"{GROUPS[removal]}: means and 95 % intervals."
        figures = ("comprehensiveness", "sufficiency", "loo_tau")
        found.append(figure(plots.bars(result, removal, figures, f"bars-{removal}"), caption))
        caption = f"{GROUPS[removal]}: the same over the share of tokens."
        found.append(figure(plots.curves(result, removal, f"curves-{removal}"), caption))
    found.append(figure(plots.cost(result, first, "cost"), f"{GROUPS[first]}: what an explanation costs."))
    found += [_table(grid) for grid in comparison_grids(result)]
    found.append(f"<p class='soft'>{_VERDICTS}</p>")
    if result.examples:
        found.append("<h2>Examples</h2><p class='soft'>Blue speaks for the answer, orange against it.</p>")
        found += [_example(example) for example in result.examples]
    found.append(f"<h2>What is measured</h2>{_METHODS}<p>{escape(_operators())}</p>")
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    found.append(f"<p class='soft'>{escape(versions)}</p>")
    return found


def _operators() -> str:
    return (
        "Deleted tokens become spaces, so that their neighbours meet; masked ones become one sign that the model does "
        f"not know (U+{ord(MASK):04X}). {SEEN_IN_TRAINING} Leave-one-out, LIME and SHAP delete. LIME has "
        f"{LIME_SAMPLES} samples a text, SHAP {SHAP_CALLS} calls or one whole permutation: of long texts, more would "
        "bring both further."
    )


def _table(grid: Grid) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in ("method", *grid.columns))
    rows = "".join(f"<tr><td>{escape(name)}</td>{_cells(cells)}</tr>" for name, cells in grid.rows)
    return f'<h2>{escape(grid.title)}</h2><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _cells(cells: Sequence[str]) -> str:
    kinds = [f' class="{cell}"' if cell in ("better", "worse") else "" for cell in cells]
    return "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, cells, strict=True))


def figure(svg: str, caption: str) -> str:
    """Return a drawing with its caption."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _example(example: ExplainedExample) -> str:
    rows = "".join(
        f'<dt>{escape(name)}</dt><dd class="example" dir="auto">{_tinted(example, scores)}</dd>'
        for name, scores in example.scores.items()
    )
    return f"<h3>{escape(example.label)} {example.score:.1%}</h3><dl>{rows}</dl>"


def _tinted(example: ExplainedExample, scores: Sequence[float]) -> str:
    """The text, each token on blue or orange, the more intense the larger its score beside the largest one."""
    strongest = max(map(abs, scores), default=0.0) or 1.0
    parts, at = [], 0
    for (start, end), score in zip(example.spans, scores, strict=True):
        colour = f"rgba({FOR if score > 0 else AGAINST}, {0.75 * abs(score) / strongest:.2f})"
        parts.append(escape(example.text[at:start]))
        parts.append(f'<span style="background: {colour}">{escape(example.text[start:end])}</span>')
        at = end
    return "".join([*parts, escape(example.text[at:])])
