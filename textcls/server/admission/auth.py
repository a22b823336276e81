"""Keys and their names: read from a file or the environment, compared in constant time, never shown."""

import hmac
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from textcls.errors import ConfigError
from textcls.server.settings import Settings

_SHORTEST: Final = 16
# Every key is compared with that of a request, and its name is a label value of metrics.
_MOST: Final = 1000
_MOST_CHARACTERS: Final = 1_000_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_API: Final = "TEXTCLS_API_KEYS"
_ADMIN: Final = "TEXTCLS_ADMIN_KEY"


class Keys:
    """A set of keys, several at once so that they can be replaced one by one.

    Args:
        entries: `NAME:KEY`, or `KEY` alone, whose name is then the start of its hash. Several may have the same name.
    """

    def __init__(self, entries: Iterable[str] = ()) -> None:
        # Digests all have the same length, so comparing them reveals nothing about the length of a key.
        self._names = {sha256(key.encode()).digest(): name for name, key in map(_split, entries)}

    @classmethod
    def from_digests(cls, digests: Iterable[Sequence[str]]) -> "Keys":
        """Return the keys of the result of `digests`."""
        keys = cls()
        keys._names = {bytes.fromhex(digest): name for name, digest in digests}
        return keys

    def digests(self) -> list[tuple[str, str]]:
        """Return names and hashes, which do not reveal the keys."""
        return [(name, digest.hex()) for digest, name in self._names.items()]

    @property
    def names(self) -> frozenset[str]:
        """The names of the keys."""
        return frozenset(self._names.values())

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, presented: bytes) -> bool:
        return self.name(presented) is not None

    def name(self, presented: bytes) -> str | None:
        """Return the name of a key, or None if it is not one of these.

        It is compared with every key, even after a match, in a time that does not depend on where they differ.
        """
        digest, found = sha256(presented).digest(), None
        for known, name in self._names.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found


def load(settings: Settings) -> tuple[Keys, Keys]:
    """Return the API keys and the admin keys from files and the environment.

    Raises:
        ConfigError: a file cannot be read, a key or its name cannot be used, a key is both an API key and an admin key,
            or limits are set without API keys.
    """
    keys = _read(settings.api_keys_file, _API)
    if not keys and (settings.key_rate or settings.key_concurrency):
        raise ConfigError(
            "--key-rate and --key-concurrency limit each API key, but there are no keys: set --api-keys-file or "
            f"{_API}, or leave the limits out."
        )
    admin = _read(settings.admin_key_file, _ADMIN)
    if {digest for _, digest in keys.digests()} & {digest for _, digest in admin.digests()}:
        raise ConfigError("An API key is the admin key as well: its callers could reload; change one.")
    return keys, admin


def presented(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the key of a request, from `authorization: Bearer KEY` or `x-api-key: KEY`; empty if it has none."""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
        if name == b"x-api-key":
            return value.strip()
    return b""


def _split(entry: str) -> tuple[str, str]:
    """Return the name and the key of an entry."""
    name, colon, key = entry.partition(":")
    if colon:
        return name.strip(), key.strip()
    return f"key-{sha256(entry.encode()).hexdigest()[:8]}", entry


def _read(path: Path | None, variable: str) -> Keys:
    found = [(variable, entry) for entry in os.environ.get(variable, "").replace(",", " ").split()]
    if path is not None:
        found += _lines(path)
        if not found:
            raise ConfigError(f"{path} contains no key: write one per line.")
    names: dict[str, str] = {}
    for where, entry in found:
        name, key = _split(entry)
        # Show neither: the part before a colon may be half a key.
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{where}: the part before the colon is not a valid key name (at most 64 letters, digits, '.', "
                "'_' and '-'); write NAME:KEY, or a KEY without a colon."
            )
        if len(key) < _SHORTEST or not key.isascii():
            raise ConfigError(f"{where}: a key is plain text of at least {_SHORTEST} characters, and this is not one.")
        if names.setdefault(key, name) != name:
            raise ConfigError(f"{where}: this key has another name elsewhere; leave one of the two out.")
    if len(names) > _MOST:
        raise ConfigError(f"There are {len(names):,} keys, and {_MOST:,} can be told apart: use fewer.")
    return Keys(entry for _, entry in found)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the place of each entry, and the entry."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_CHARACTERS + 1)
    except FileNotFoundError as error:
        raise ConfigError(f"There is no file of keys {path}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The keys in {path} cannot be read: is it a text file that this user may read?") from error
    if len(text) > _MOST_CHARACTERS:
        raise ConfigError(f"{path} is longer than {_MOST_CHARACTERS:,} characters: is it the file of keys?")
    for i, line in enumerate(text.splitlines()):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            yield f"{path}, line {i + 1}", entry
