"""Addresses given where paths on this machine are expected."""

import re
from pathlib import Path
from typing import Final

# What `Path` makes of the address of a store; a Windows drive is one letter.
_ADDRESS: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]")


def store_of(path: Path) -> str | None:
    """Return the scheme of a store, such as s3://, if `path` is an address and not a path on this machine."""
    found = _ADDRESS.match(str(path))
    return None if found is None else f"{found[1]}://"
