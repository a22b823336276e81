"""From a trained model to a file of prototypes: its encoder is saved, and then taught the training rows.

A file is first taught in the same way as it can be taught later (`textcls.model.teaching`): its own graph computes the
vectors of the rows, whose means are the support rows of their labels.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from textcls.errors import ConfigError, InputError
from textcls.model.artifact import ModelInfo
from textcls.model.classifier import Classifier
from textcls.model.prototypes import Prototypes, SupportRow, kept_text
from textcls.model.teaching.centres import Float32, centres
from textcls.model.teaching.support import Support, prototypes_of
from textcls.model.teaching.teach import embed
from textcls_torch.export.heads.prototype_head import PrototypeHead
from textcls_torch.models.prototypes import TextEncoder, text_encoder
from textcls_training.config.settings import Size
from textcls_training.data.corpus import Corpus
from textcls_training.export.parity import Parity, write_checked
from textcls_training.export.prune import budget, lookup_tables
from textcls_training.export.save import content_of
from textcls_training.export.support_rows import check_support_rows
from textcls_training.export.tables import LookupTables
from textcls_training.models.bit_codes import BITS

__all__ = ["TextEncoder", "encoder_tables", "save_prototypes", "text_encoder"]

# The numbers of rows, and of tokens of each, on which the lengths of the parts of vectors are measured.
MEASURED_ROWS, MEASURED_TOKENS = 500, 200
# The bytes that the metadata use per support row.
SUPPORT_ROW_BYTES: Final = 12
# For a label with more rows, this number of them, evenly spaced, make its support rows.
MOST_ROWS: Final = 1000


def encoder_tables(encoder: TextEncoder, corpus: Corpus, size: Size, labels: Sequence[str]) -> LookupTables:
    """Return the tables of an encoder, which together with the support rows are about as large as allowed.

    Args:
        encoder: the encoder of texts.
        corpus: the texts it was trained on.
        size: how large the file may be.
        labels: the labels of the labelled rows.

    Raises:
        ConfigError: there is not enough space.
    """
    support = check_support_rows(labels) * (2 * _width(encoder) + SUPPORT_ROW_BYTES)
    most = budget(size, len(set(labels)))
    if most is not None and support >= most:
        raise ConfigError(
            f"The support rows alone take {support:,} bytes, and the file may have {most:,}; choose a larger size."
        )
    return lookup_tables(encoder.model, corpus, None if most is None else most - support)


def _width(encoder: TextEncoder) -> int:
    """Return the number of entries of a text's vector."""
    return encoder.width * len(encoder.model.views) + BITS


def save_prototypes(
    encoder: TextEncoder,
    tables: LookupTables,
    texts: Sequence[str],
    labels: Sequence[str],
    info: ModelInfo,
    path: Path,
    *,
    keep_texts: bool,
) -> ModelInfo:
    """Make the support rows of all labels, check the file against PyTorch, and write it to `path`.

    Args:
        encoder: the encoder of texts.
        tables: the tables that the text graph reads.
        texts: the texts of the training rows.
        labels: the label of each.
        info: the metadata of the file, except the prototypes.
        path: the path of the file.
        keep_texts: whether the file keeps the texts nearest to support rows, or only their numbers.

    Returns:
        The metadata of the file.

    Raises:
        InputError: all rows of a label are empty.
        ConfigError: training diverged; nothing is written.
        ArtifactError: PyTorch and ONNX Runtime disagree; the model is next to `path`.
    """
    info = replace(info, prototypes=_placeholder(encoder, len(info.labels), keep_texts), format_version=2)
    lengths = _part_lengths(encoder, tables, texts, info)
    empty = content_of(tables, _head_without_rows(encoder, lengths, info), info)
    classifier = Classifier.from_bytes(empty, path)
    parts = []
    rows_of = defaultdict(list)
    for i, label in enumerate(labels):
        rows_of[label].append(i)
    for label in info.labels:
        rows = _some(rows_of[label])
        parts.append(_support_rows(classifier, [texts[i] for i in rows], rows, keep_texts=keep_texts))
        if not parts[-1][0]:
            raise InputError(f"No training row of the label {label!r} holds a word or a sign; a prototype needs one.")
    prototypes = Prototypes(encoder.calibration.scale, keep_texts, tuple(rows for rows, _ in parts))
    support = Support(replace(classifier.info, prototypes=prototypes), tuple(vectors for _, vectors in parts))
    content = support.written_to(empty, path)
    head = PrototypeHead(encoder, lengths, np.concatenate(support.of_label), prototypes, info.bias)
    write_checked(content, path, Parity(tables, head, info.max_tokens, encoder.model.types))
    return support.info


def _placeholder(encoder: TextEncoder, labels: int, keep_texts: bool) -> Prototypes:
    """Return one support row per label, until there are others."""
    row = SupportRow(1, 1, False, "" if keep_texts else None)
    return Prototypes(encoder.calibration.scale, keep_texts, ((row,),) * labels)


def _head_without_rows(encoder: TextEncoder, lengths: Sequence[float], info: ModelInfo) -> PrototypeHead:
    """Return a head with one placeholder support row per label."""
    vector_SF = np.zeros((len(info.labels), _width(encoder)), np.float32)
    return PrototypeHead(encoder, lengths, vector_SF, prototypes_of(info, Path()), info.bias)


def _part_lengths(encoder: TextEncoder, tables: LookupTables, texts: Sequence[str], info: ModelInfo) -> list[float]:
    some = [texts[i] for i in np.unique(np.linspace(0, len(texts) - 1, MEASURED_ROWS).astype(np.int64))]
    head = _head_without_rows(encoder, [1.0] * len(encoder.calibration.parts), info)
    return head.part_lengths(tables, Corpus.of(some, min(info.max_tokens, MEASURED_TOKENS)))


def _some(rows: Sequence[int]) -> list[int]:
    """Return some of the rows, no more than are needed."""
    some = np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64))
    return [rows[i] for i in some]


def _support_rows(
    classifier: Classifier, texts: Sequence[str], rows: Sequence[int], *, keep_texts: bool
) -> tuple[tuple[SupportRow, ...], Float32]:
    vector_NF, _ = embed(classifier, texts)
    there = np.flatnonzero(vector_NF.any(1))
    found = centres(vector_NF[there])
    support = []
    for nearest, size in zip(found.nearest_K.tolist(), found.size_K.tolist(), strict=True):
        number = int(there[nearest])
        support.append(SupportRow(rows[number] + 1, size, False, kept_text(texts[number]) if keep_texts else None))
    return tuple(support), found.centre_KF
