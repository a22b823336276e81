"""`textcls vectors`: files of word vectors, from published ones or from a teacher, for `textcls train --vectors`."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from textcls.cli.options import PATH, new_text_column_option, once, reading_options
from textcls.cli.outputs import OUTPUT, NamedPath
from textcls.cli.reading import Reading
from textcls.data.columns import DEFAULT_TEXT_COLUMNS
from textcls.display.terminal.console import stderr_console
from textcls.display.terminal.progress import progress_on
from textcls.errors import ConfigError, InputError
from textcls_training.config.settings import TrainConfig
from textcls_training.data.unlabelled import UnlabelledTexts
from textcls_training.data.unlabelled_files import read_unlabelled
from textcls_training.vectors import build, distil, file, model2vec, text_files

MOST: Final = 50_000
DIMS: Final = 256
MOST_TEXTS: Final = TrainConfig().unlabelled_rows
BITS: Final[Mapping[str, file.Bits]] = {"2": 2, "4": 4, "8": 8}

Command = Callable[..., Any]


def _common(command: Command) -> Command:
    """Give a command the options that both commands share."""
    options = (
        click.option("--output", "-o", type=OUTPUT, required=True, help="File of vectors to write."),
        click.option(
            "--most",
            type=click.IntRange(1, file.MOST_WORDS),
            default=MOST,
            show_default=True,
            help="Use the first words only, this many; they should be the most frequent.",
        ),
        click.option(
            "--dims",
            type=click.IntRange(1, file.MOST_DIMS),
            default=DIMS,
            show_default=True,
            help="Keep at most this many principal components.",
        ),
        click.option(
            "--bits",
            type=click.Choice([*BITS]),
            default="8",
            show_default=True,
            help="Bits per number; 4 halves the file, 2 halves it again.",
        ),
        click.option("--source", metavar="TEXT", help="Source to record for the vectors.  [default: the name]"),
        click.option(
            "--licence",
            metavar="TEXT",
            default="not stated",
            show_default=True,
            help="Licence to record; every model trained with the vectors names it.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    epilog="""Example: textcls vectors import glove.6B.50d.txt --output glove.vectors

    Example: textcls vectors distil --teacher all-MiniLM-L6-v2 --words words.txt --output en.vectors"""
)
def vectors() -> None:
    """Make a file of word vectors, for textcls train --vectors."""


@vectors.command("import", epilog="Example: textcls vectors import glove.6B.50d.txt --output glove.vectors")
@click.argument("given", metavar="FILE", type=PATH)
@_common
def import_(given: Path, output: Path, most: int, dims: int, bits: str, source: str | None, licence: str) -> None:
    """Import the vectors in FILE: text of word2vec, GloVe or fastText (.gz too), or a model2vec folder."""
    about = {"source": source or given.name, "licence": licence, "source_sha256": _sha256(given)}
    if given.is_dir():
        words, row_VD = model2vec.read(given, most)
        words, row_VD = build.without_zeros(words, row_VD[:, :dims])
        how = "the whole words of a model2vec folder, as they were"
    else:
        words, raw_VE = text_files.read(given, most)
        words, row_VD = build.prepared(words, raw_VE, dims)
        how = f"imported from text, {_prepared(row_VD)}"
    _save(output, words, row_VD, {**about, "how": how}, bits)


@vectors.command(
    "distil", epilog="Example: textcls vectors distil --teacher all-MiniLM-L6-v2 --words words.txt --output en.vectors"
)
@click.option("--teacher", metavar="NAME", required=True, help="Folder or name of a sentence-transformers model.")
@click.option(
    "--words", "word_list", type=PATH, required=True, help="File of words, one per line, the most frequent first."
)
@click.option(
    "--texts",
    "texts_of",
    multiple=True,
    type=NamedPath(path_type=Path, allow_dash=True),
    help=(
        "File of unlabelled texts like those the vectors are for: fits the vectors so that their sum over a text "
        f"comes close to the teacher's vector of it. {MOST_TEXTS:,} are used at most. May be repeated."
    ),
)
@new_text_column_option
@_common
@reading_options
def distil_(
    teacher: str,
    word_list: Path,
    texts_of: tuple[Path, ...],
    text_columns: tuple[str, ...],
    output: Path,
    most: int,
    dims: int,
    bits: str,
    source: str | None,
    licence: str,
    reading: Reading,
) -> None:
    """Distil vectors from a sentence encoder: each word by itself goes through it. Needs the extra `teacher`.

    The encoder's answers are cached, so a second run is quick.
    """
    if text_columns and not texts_of:
        raise ConfigError("--text-column needs --texts, the file of the texts.")
    once([word_list, *texts_of])
    words = distil.read_words(word_list, most)
    texts = _read_texts(texts_of, text_columns, reading) if texts_of else None
    about = {"source": source or Path(teacher).name, "licence": licence, "words_sha256": _sha256(word_list)}
    if Path(teacher).is_dir():
        about["source_sha256"] = _sha256(Path(teacher))
    with progress_on(stderr_console(quiet=reading.quiet), "words and texts" if texts else "words") as progress:
        words, row_VD = distil.distilled(teacher, words, texts.texts if texts else [], dims, progress)
    how = f"each word by itself through the encoder, {_prepared(row_VD)}"
    if texts is not None:
        how += f", fitted to its vectors of {len(texts.texts):,} texts"
        about |= {"texts": str(len(texts.texts)), "texts_sha256": texts.sha256()}
    _save(output, words, row_VD, {**about, "how": how}, bits)


def _read_texts(paths: Sequence[Path], text_columns: Sequence[str], reading: Reading) -> UnlabelledTexts:
    """Read texts without labels, without duplicates, and at most `MOST_TEXTS`.

    Raises:
        InputError: a file cannot be read, lacks the columns, or none of its texts contains a token.
    """
    columns, guess = text_columns or DEFAULT_TEXT_COLUMNS, not text_columns
    found, notes = read_unlabelled(
        paths, columns, (), (), limit=MOST_TEXTS, guess=guess, options=reading.options, bad=reading.bad
    )
    reading.say(notes)
    reading.say_skipped()
    if not found.texts:
        raise InputError(f"No text of {paths[0]} contains a word or symbol, so vectors cannot be fitted to them.")
    return found


def _prepared(row_VD: NDArray[np.float32]) -> str:
    return f"{row_VD.shape[1]} principal components, smooth inverse frequency"


def _save(output: Path, words: Sequence[str], row_VD: NDArray[np.float32], about: Mapping[str, str], bits: str) -> None:
    file.save(output, words, row_VD, about, BITS[bits])
    loaded = file.load(output)
    size = output.stat().st_size / 1e6
    click.echo(f"{len(loaded.words):,} words of {loaded.dim} numbers, {size:.2f} MB -> {output}")


def _sha256(path: Path) -> str:
    """Return the hash of a file; for a folder, that of its weights.

    Raises:
        InputError: it cannot be read.
    """
    path = path / "model.safetensors" if path.is_dir() else path
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
