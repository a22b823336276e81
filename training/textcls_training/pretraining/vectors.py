"""From what a pre-training has learned of words to a file of vectors. Shapes: V words, D numbers of a vector."""

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
    """Write a vector for each of `words`, centred and with frequent words made light, as `vectors.build` does.

    Args:
        output: the file.
        words: the words, the most frequent first.
        raw_VD: what was learned of each.
        how: it was learned, in words.
        texts: where from.
        config: what it was told.

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
