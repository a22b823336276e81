"""Answer many rows: in constant memory, in their order, by one process or by several.

answers.py    what is asked of each text, and an answer as the columns it becomes
chunks.py     rows in chunks that are bounded in number and in characters
workers.py    chunks in, chunks with answers out
"""

from textcls.bulk.answers import Asked
from textcls.bulk.chunks import ROWS, chunked
from textcls.bulk.workers import answered

__all__ = ["ROWS", "Asked", "answered", "chunked"]
