"""Options that say how something is done, which need another option for it to be done at all."""

from collections.abc import Collection
from typing import Final

_NEEDS: Final = {
    "rationale_weight": "rationales",
    "unlabelled_weight": "unlabelled",
    "unlabelled_rows": "unlabelled",
    "rehearsal_rows": "state",
    "mixing_rate": "mixing",
}


def unmet(options: Collection[str], given: Collection[str]) -> tuple[str, str] | None:
    """Return the first of `options` that needs an option not in `given`, and that option; None if there is none."""
    return next(((option, need) for option, need in _NEEDS.items() if option in options and need not in given), None)
