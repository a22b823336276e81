"""Keys: read from a file or the environment, compared in constant time, never shown."""

import hmac
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from textcls.errors import ConfigError
from textcls.server.settings import Settings

_SHORTEST: Final = 16
_API: Final = "TEXTCLS_API_KEYS"
_ADMIN: Final = "TEXTCLS_ADMIN_KEY"


class Keys:
    """A set of keys, several at once so that they can be exchanged one after the other."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        # Digests have one length, so that comparing them tells nothing about that of a key.
        self._digests = tuple(sha256(key.encode()).digest() for key in keys)

    @classmethod
    def from_digests(cls, digests: Iterable[str]) -> "Keys":
        """Return the keys that `digests` gave."""
        keys = cls()
        keys._digests = tuple(map(bytes.fromhex, digests))
        return keys

    def digests(self) -> list[str]:
        """Return the keys as hashes, from which no key can be told."""
        return [digest.hex() for digest in self._digests]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __contains__(self, presented: bytes) -> bool:
        """Compare with every key, whichever fits, in a time that does not depend on where they differ."""
        digest, found = sha256(presented).digest(), False
        for known in self._digests:
            found |= hmac.compare_digest(digest, known)
        return found


def load(settings: Settings) -> tuple[Keys, Keys]:
    """Return the API keys and the admin keys of files and environment.

    Raises:
        ConfigError: a file cannot be read, or a key is too short.
    """
    return _read(settings.api_keys_file, _API), _read(settings.admin_key_file, _ADMIN)


def presented(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the key of a request, from `authorization: Bearer KEY` or `x-api-key: KEY`; empty if it has none."""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip()
        if name == b"x-api-key":
            return value.strip()
    return b""


def _read(path: Path | None, variable: str) -> Keys:
    found = [(variable, key) for key in os.environ.get(variable, "").replace(",", " ").split()]
    if path is not None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"The keys in {path} cannot be read: is it a text file that this user may read?"
            ) from error
        stripped = [line.strip() for line in lines]
        found += [(f"{path}", line) for line in stripped if line and not line.startswith("#")]
        if not found:
            raise ConfigError(f"{path} holds no key: write one a line.")
    for where, key in found:
        if len(key) < _SHORTEST or not key.isascii():
            raise ConfigError(f"{where} holds a key that is no plain text of at least {_SHORTEST} characters.")
    return Keys(key for _, key in found)
