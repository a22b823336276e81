"""Stamps that show whether the operator's files, models and keys, have changed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textcls.errors import TextclsError
from textcls.server.models import registry
from textcls.server.settings import Settings

# For each file its path, device, inode, time and size, in types that survive JSON.
Stamps = list[list[Any]]


def stamps(arguments: Sequence[str], settings: Settings) -> Stamps:
    """Return stamps that change when a file of models or keys is replaced, added or removed.

    Args:
        arguments: the models, as for `registry.resolve`.
        settings: the settings, which name the files of keys.
    """
    found: Stamps = []
    try:
        paths = [source.path for source in registry.resolve(arguments)]
    except (TextclsError, OSError) as error:
        # If what is there now cannot be served, that is a change, too: the reload will report it.
        paths = []
        found.append([str(error)])
    paths += [path for path in (settings.api_keys_file, settings.admin_key_file) if path is not None]
    return found + [_stamp(path) for path in paths]


def _stamp(path: Path) -> list[Any]:
    try:
        found = path.stat()
    except OSError as error:
        return [str(path), error.errno]
    return [str(path), found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size]
