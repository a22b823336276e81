"""The identity of a training, so that it never continues from the state of another."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from textcls_training.config.resolve import ResolvedConfig
from textcls_training.config.settings import OPTIONS, WITHOUT_EFFECT, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.unlabelled import UnlabelledTexts


def identity(
    given: LabelledTexts,
    valid: LabelledTexts | None,
    unlabelled: UnlabelledTexts | None,
    config: TrainConfig,
    resolved: ResolvedConfig,
    versions: Mapping[str, str],
    earlier: str | None = None,
    teacher: str | None = None,
) -> dict[str, Any]:
    """Return hashes of the rows, all options, and versions, by readable names.

    Args:
        given: the rows.
        valid: validation rows, if given.
        unlabelled: texts without labels, if given.
        config: the given options.
        resolved: the resolved configuration.
        versions: versions of packages.
        earlier: the hash of the finished training that this one continues from.
        teacher: the hash of the encoder that answers texts without labels.
    """
    options = [name for name in OPTIONS if name not in WITHOUT_EFFECT]
    return {
        "training rows": _hash_of(given),
        "validation rows": None if valid is None else _hash_of(valid),
        "unlabelled texts": None if unlabelled is None else unlabelled.sha256(),
        "the state it goes on from": earlier,
        "columns": [*given.text_columns, given.label_column],
        "options": {name: plain(getattr(config, name)) for name in options},
        # Steps could once be dealt to shards, with another result; a state of these is of another training.
        "shards": None,
        "model": None if config.model is None else asdict(config.model),
        "rates": None if config.optim is None else asdict(config.optim),
        "the hash of the vectors": None if resolved.vectors is None else resolved.vectors.sha256,
        "the hash of the teacher": teacher,
        **_about_labels(config.label_names),
        "versions": dict(versions),
    }


def _about_labels(given: Path | str | None) -> dict[str, str]:
    """Return the hash of the texts about labels, if there is a file of them."""
    return (
        {"the hash of label_names": hashlib.sha256(given.read_bytes()).hexdigest()} if isinstance(given, Path) else {}
    )


def _hash_of(rows: LabelledTexts) -> str:
    digest = hashlib.sha256(rows.sha256().encode())
    digest.update(json.dumps([*map(list, rows.rationales or ())]).encode())
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """Return the value of an option in JSON form."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
