"""What makes a training this one and no other, so that it never goes on from the state of another."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import OPTIONS, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts


def identity(
    given: LabelledTexts,
    valid: LabelledTexts | None,
    unlabelled: UnlabelledTexts | None,
    config: TrainConfig,
    resolved: ResolvedConfig,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Return hashes of the rows, all options, and versions, by the names under which people know them."""
    return {
        "training rows": _hash_of(given),
        "validation rows": None if valid is None else _hash_of(valid),
        "unlabelled texts": None if unlabelled is None else unlabelled.sha256(),
        "columns": [*given.text_columns, given.label_column],
        "options": {name: _plain(getattr(config, name)) for name in OPTIONS},
        "model": None if config.model is None else asdict(config.model),
        "rates": None if config.optim is None else asdict(config.optim),
        "the hash of the vectors": None if resolved.vectors is None else resolved.vectors.sha256,
        "versions": dict(versions),
    }


def _hash_of(rows: LabelledTexts) -> str:
    digest = hashlib.sha256(rows.sha256().encode())
    digest.update(json.dumps([*map(list, rows.rationales or ())]).encode())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | list | tuple | dict | None) else str(value)
