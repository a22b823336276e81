"""The options that a search allows, from Python and on the command line."""

from typing import Final

from textcls._util.options import Integer, Number

TRIALS: Final = Integer(1)
SECONDS: Final = Number(0, above=True)
FOLDS: Final = Integer(2, 10)
ROUNDS: Final = Integer(1, 10)
WORKERS: Final = Integer(1)
# Training options about more than labelled rows alone, or about one model rather than rows.
LEFT_OUT: Final = (
    "teacher", "tune_teacher", "unlabelled_rows", "unlabelled_weight", "rationale_weight", "rehearsal_rows", "head",
    "keep_texts", "example", "target_precision", "target_recall",
)  # fmt: skip
