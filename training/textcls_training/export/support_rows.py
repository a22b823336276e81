"""How many support rows labels have in a file of prototypes."""

from collections import Counter
from collections.abc import Sequence

from textcls.errors import ConfigError
from textcls.model.prototypes import MOST_SUPPORT_ROWS
from textcls.model.teaching.centres import MEANS, MOST_SINGLE


def check_support_rows(labels: Sequence[str]) -> int:
    """Return how many support rows the labels of some rows will have.

    Raises:
        ConfigError: there are too many for a file.
    """
    counts = Counter(labels)
    rows = sum(count if count <= MOST_SINGLE else MEANS for count in counts.values())
    if rows > MOST_SUPPORT_ROWS:
        raise ConfigError(
            f"{len(counts):,} labels would be made of {rows:,} support rows, and the maximum is "
            f"{MOST_SUPPORT_ROWS:,}; train with a linear head."
        )
    return rows
