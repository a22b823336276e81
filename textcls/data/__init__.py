"""Read and write tables of texts: the one reader under train, evaluate, predict and check.

    source.py     where the bytes come from: a file or standard input, packed or not
    storage.py    whole files in folders or behind URLs, worked on one by one
    web.py        one of those on a web server
    fetching.py   a file behind a URL, if its hash is the one expected
    patterns.py   names with * in them
    compression.py  what files may be packed with
    folders.py    the files of a folder, or a folder a class
    memory.py     tables of pandas and others
    formats.py    which format they are in: by name, or by the first bytes
    decoding.py   bytes to text: UTF-8, what a byte order mark says, or the encoding asked for
    delimited.py  CSV and TSV             one module a format: `read` gives columns and rows,
    jsonl.py      JSON lines              `Writer` takes rows and answers
    json_list.py  a list in JSON (read alone)
    arrow.py      Arrow and Feather (read alone)
    parquet.py    Parquet
    excel.py      Excel
    plain.py      what only Parquet has a type for, as text
    fasttext.py   fastText's lines (read alone)
    columns.py    which column is the text, and which the label
    tables.py     an open table, of one file or several
    targets.py    what a row says of its label, or of several, and how to find that out
    places.py     where each row stands, for messages
    labelled.py   texts with their labels
    known_labels.py  texts with their label sets, where these are known
    writing.py    a file or standard output that takes rows and answers

A reader yields `Row`s, and a `Bad` for a row that cannot be used; `BadRows` alone decides whether that ends the work.
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
