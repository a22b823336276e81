"""Read and write tables of texts: the one reader under train, evaluate, predict and check.

    source.py     where the bytes come from: a file or standard input, compressed or not
    storage.py    whole files in folders or at URLs, processed one by one
    web.py        one of those on a web server
    fetching.py   a file at a URL, if its hash is the expected one
    patterns.py   file names with * in them
    compression.py  the compression formats of files
    folders.py    the files of a folder, or one folder per class
    memory.py     tables of pandas and others
    formats.py    which format a file is in: by its name, or by its first bytes
    decoding.py   bytes to text: UTF-8, what a byte order mark says, or the encoding asked for
    delimited.py  CSV and TSV             one module per format: `read` returns columns and rows,
    jsonl.py      JSON lines              `Writer` takes rows and answers
    json_list.py  a list in JSON (read only)
    arrow.py      Arrow and Feather (read only)
    parquet.py    Parquet
    excel.py      Excel
    plain.py      values that only Parquet has a type for, as text
    fasttext.py   lines in fastText's form (read only)
    columns.py    which column is the text, and which the label
    tables.py     an open table, of one file or several
    targets.py    the label or labels that a row gives, and how to detect their form
    places.py     where each row is, for messages
    labelled.py   texts with their labels
    given_labels.py  labels that a program gives with texts, checked and read as the model has them
    known_labels.py  texts with their label sets, if these are known
    writing.py    a file or standard output that takes rows and answers

A reader yields `Row`s, and a `Bad` for each row that cannot be used; only `BadRows` decides whether that ends the work.
"""

from textcls.data.labelled import (
    Labelled,
    LabelledRow,
    LabelledSets,
    LabelledTable,
    no_rows,
    open_labelled,
    open_targets,
    read_label_sets,
    read_labelled,
)
from textcls.data.rows import Bad, BadRows, ReadOptions, Row
from textcls.data.tables import Table, TextRow, join_columns, open_table, open_tables, texts_of
from textcls.data.targets import Target, TargetOptions, label_of
from textcls.model.label_sets import LabelSet

__all__ = [
    "Bad",
    "BadRows",
    "LabelSet",
    "Labelled",
    "LabelledRow",
    "LabelledSets",
    "LabelledTable",
    "ReadOptions",
    "Row",
    "Table",
    "Target",
    "TargetOptions",
    "TextRow",
    "join_columns",
    "label_of",
    "no_rows",
    "open_labelled",
    "open_table",
    "open_tables",
    "open_targets",
    "read_label_sets",
    "read_labelled",
    "texts_of",
]
