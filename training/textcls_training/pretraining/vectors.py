"""From what a pre-training has learned about words to a file of vectors. Shapes: V words, D numbers per vector."""

from pathlib import Path
from typing import Final

from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.pretraining.report import VectorsWritten
from textcls_training.pretraining.texts import PretrainingTexts
from textcls_training.vectors import build, file

BITS: Final = 8


def save_vectors(
    output: Path, words: list[str], raw_VD: Float32, how: str, texts: PretrainingTexts, config: PretrainConfig
) -> VectorsWritten:
    """Write a vector for each of `words`, centred and with less weight for frequent words, as in `vectors.build`.

    Args:
        output: the file.
        words: the words, the most frequent first.
        raw_VD: what was learned about each.
        how: how it was learned, as text.
        texts: the texts it was learned from.
        config: its configuration.

    Raises:
        InputError: all vectors are alike.
        SurroundingsError: the file cannot be written.
    """
    words, row_VD = build.prepared(words, raw_VD, raw_VD.shape[1])
    about = {
        "source": f"{len(texts.train):,} texts without labels",
        "licence": "that of the texts",
        "how": how,
        "seed": str(config.seed),
        "texts_sha256": texts.sha256,
    }
    file.save(output, words, row_VD, about, BITS)
    return VectorsWritten(
        texts=len(texts.train), words=len(words), dim=row_VD.shape[1], file_bytes=output.stat().st_size
    )
