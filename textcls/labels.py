"""A label by its name: its number, or a word on which may be meant."""

from collections.abc import Sequence
from difflib import get_close_matches

from textcls.errors import ConfigError


def label_number(labels: Sequence[str], label: str) -> int:
    """Return the number of a label.

    Raises:
        ConfigError: there is no such label.
    """
    if label in labels:
        return labels.index(label)
    spelt = {name.lower(): name for name in reversed(labels)}
    near = get_close_matches(label.lower(), spelt, 1)
    meant = f" (did you mean {spelt[near[0]]!r}?)" if near else ""
    raise ConfigError(f"There is no label {label!r}{meant}; the model's are {', '.join(labels)}.")
