"""Files in, a file with the same rows and their answers out: what `textcls predict` calls."""

from collections.abc import Callable, Sequence
from pathlib import Path

from textcls._util.atomic_write import check_not_an_input
from textcls.data import BadRows, ReadOptions, Table, open_tables, texts_of, writing
from textcls.data.memory import Readable
from textcls.data.writing import WriteOptions
from textcls.errors import InputError
from textcls.jobs.batch.answer_columns import AnswerColumns
from textcls.jobs.batch.chunks import ROWS, chunked
from textcls.jobs.batch.workers import answered
from textcls.model.classifier import Classifier
from textcls.model.label_paths import label_columns


def predict_files(
    classifier: Classifier,
    inputs: Sequence[Readable],
    output: Path,
    answer: AnswerColumns,
    *,
    text_columns: Sequence[str] = (),
    write: WriteOptions | None = None,
    stream: bool = False,
    workers: int = 1,
    options: ReadOptions | None = None,
    bad: BadRows | None = None,
    say: Callable[[Sequence[str]], None] = lambda notes: None,
) -> int:
    """Answer each row of the files `inputs`, write rows and answers to `output`, and return how many there were.

    All columns and the order of the rows are kept.

    Args:
        classifier: the model that answers.
        inputs: the files; `-` is standard input.
        output: the file to write, which appears whole or not at all; `-` is standard output.
        answer: the columns that are added.
        text_columns: the text columns; by default those of the training, or ones with well-known names.
        write: how the output is written; by default in the format of its name, on standard output in that of the input.
        stream: whether each row is answered as soon as it is read.
        workers: the number of processes that answer.
        options: how the files are read.
        bad: what to do with rows that cannot be used.
        say: takes notes on what was detected in the files and is not the default, in sentences.

    Raises:
        InputError: a file cannot be read, lacks the columns, already has an answer column, or is the output.
        ConfigError: the output has no format that can be written, or a reading option makes no sense.
        SurroundingsError: the output cannot be written, or a worker has died.
    """
    write = write or WriteOptions()
    check_not_an_input(output, [*inputs, classifier.path])
    written = 0
    with open_tables(inputs, options, bad) as table:
        columns = table.choose(text_columns or classifier.info.text_columns, "text", guess=not text_columns)
        labels = label_columns(classifier.info.label_column, table.columns)
        table.note_lacking(classifier.info.columns, [*columns, *labels])
        say(table.notes)
        kind = writing.format_of(output, write.format, table.format)
        answer = answer.written_as(kind, classifier)
        _check_columns(table, answer.names, free=kind == "jsonl")
        texts = texts_of(table, columns, classifier.info.columns, classifier.info.max_tokens)
        chunks = chunked(texts, 1 if stream else ROWS)
        with writing.open_writer(output, kind, table.columns, answer.names, table.schema, write) as writer:
            for chunk, answers in answered(classifier, chunks, answer, workers):
                writer.write([item.row for item in chunk], answers)
                written += len(answers)
    return written


def _check_columns(table: Table, added: Sequence[str], *, free: bool) -> None:
    for part in table.parts:
        clash = next((name for name in added if name in part.columns), None)
        if clash is not None:
            raise InputError(
                f"{part.file} already has a column {clash!r}, where the answers go; give theirs other names, as with "
                "--prefix answer_."
            )
    if not free:
        table.require_same_columns()
