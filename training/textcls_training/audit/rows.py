"""The audit of the rows of a file, for `textcls check --labels`."""

from collections.abc import Sequence

from textcls.data.labelled import LabelledRow
from textcls.data.targets import Target
from textcls.display.terminal.console import stderr_console
from textcls.evaluation.data_quality.label_audit import LabelAudit
from textcls.model.columns import Column
from textcls_training.audit.run import audit
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.fit.progress import progress_on


def audit_rows(
    rows: Sequence[LabelledRow[Target]],
    columns: tuple[Column, ...] = (),
    cells: Sequence[Sequence[str]] = (),
    *,
    quiet: bool = False,
) -> LabelAudit:
    """Return the rows whose label is probably wrong, by texts and `columns`; report progress on standard error.

    Raises:
        InputError: nothing can be learned from the rows.
    """
    labels = [row.label for row in rows if isinstance(row.label, str)]
    label_sets = [row.label for row in rows if not isinstance(row.label, str)]
    weights = [row.weight for row in rows]
    given = LabelledTexts(
        texts=[row.text for row in rows],
        labels=labels,
        label_sets=label_sets or None,
        weights=weights if set(weights) != {1.0} else None,
        columns=columns,
        cells=cells,
    )
    with progress_on(stderr_console(quiet=quiet)) as callback:
        return audit(given, callback=callback)
