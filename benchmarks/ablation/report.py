"""The table of an ablation: a row a choice, the mean over its seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

from ablation.cells import AblationState
from runner import Figures, markdown_table, mean_and_spread

COLUMNS: Final = (
    "choice", "accuracy", "macro-F1", "perplexity", "gate", "parameters", "of mixing", "KB", "CPU s", "us",
    "us, 2,048 tokens", "compr. ↑", "suff. ↓", "tau ↑",
)  # fmt: skip
NOTES: Final = (
    "Accuracy and macro-F1 in percent on rows held out, mean over the seeds ± standard deviation; times are the least "
    "of the seeds, and those of the processor, as other work only adds to them; everything else is a mean. Perplexity: "
    "exponential of the cross-entropy of the calibrated answers. Gate: the largest of the mixing layer. CPU s: "
    "training, over all threads. us: microseconds of one text with its contributions, one thread; of 2,048 tokens the "
    "same. Compr., suff., tau: comprehensiveness, sufficiency and Kendall's tau with leave-one-out of the "
    "contributions."
)
NONE: Final = "-"


@dataclass(frozen=True, slots=True)
class AblationRow:
    """What the seeds of one choice came to."""

    name: str
    runs: Sequence[Figures]

    def mean(self, figure: str) -> float | None:
        """Return the mean of a figure over the seeds; None where one seed has none."""
        values = [run[figure] for run in self.runs]
        return None if any(value is None for value in values) else float(mean(values))

    def least(self, figure: str) -> float:
        """Return the least of a time over the seeds: other work on the machine only adds to it."""
        return float(min(run[figure] for run in self.runs))

    def lengths(self) -> dict[int, float]:
        """Return the least microseconds of a text by its number of tokens."""
        return {int(n): min(run["length_us"][n] for run in self.runs) for n in self.runs[0]["length_us"]}

    def cells(self) -> list[str]:
        """Return what stands in the table."""
        spread = (mean_and_spread([run[figure] for run in self.runs]) for figure in ("accuracy", "macro_f1"))
        longest = max(self.lengths().items())[1]
        return [
            self.name,
            *spread,
            self._shown("perplexity", ".2f"),
            self._shown("gate", ".2f"),
            self._shown("parameters", ",.0f"),
            self._shown("mixing_parameters", ",.0f"),
            f"{self.runs[0]['bytes'] / 1000:,.0f}",
            f"{self.least('train_cpu_s'):.1f}",
            f"{self.least('alone_us'):,.0f}",
            f"{longest:,.0f}",
            *(self._shown(figure, ".3f") for figure in ("comprehensiveness", "sufficiency", "loo_tau")),
        ]

    def _shown(self, figure: str, style: str) -> str:
        value = self.mean(figure)
        return NONE if value is None else format(value, style)


def rows_of(state: AblationState) -> list[AblationRow]:
    """Return the rows, in the order of measuring."""
    return [AblationRow(name, [figures for _, figures in runs]) for name, runs in state.by_name().items()]


def table(state: AblationState) -> list[list[str]]:
    """Return the cells of the table; behind the rows one for each cell that failed, with its error."""
    failed = [[str(cell), error, *[NONE] * (len(COLUMNS) - 2)] for cell, error in state.errors.items()]
    return [*(row.cells() for row in rows_of(state)), *failed]


def headline(state: AblationState) -> str:
    """Return the line that says when, on what and where a run was."""
    about = state.about
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return (
        f"{about['date']}, {about['data']}, {about['train_rows']:,} rows to train on, {about['test_rows']:,} held out, "
        f"settings {about['settings']}, {about['machine']}; {versions}."
    )


def markdown(state: AblationState) -> str:
    """Return the table in Markdown."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in table(state)]
    return "\n".join([headline(state), "", *markdown_table(COLUMNS, cells), "", NOTES, ""])
