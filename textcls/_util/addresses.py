"""Addresses where paths of this machine are meant."""

import re
from pathlib import Path
from typing import Final

# What `Path` makes of the address of a store; a drive of Windows is one letter.
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]")


def store_of(path: Path) -> str | None:
    """Return the kind of store, as in s3://, that somebody has named where a path of this machine is meant, if any."""
    found = _ADDRESS.match(str(path))
    return None if found is None else f"{found[1]}://"
