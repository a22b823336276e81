"""A table of rows on the device: which rows the texts of a batch use, and how these are read and updated."""

from textcls_kernels.rows.encoded_texts import EncodedTexts, collect_uses
from textcls_kernels.rows.table import Uses, move_rows, read_rows

__all__ = ["EncodedTexts", "Uses", "collect_uses", "move_rows", "read_rows"]
