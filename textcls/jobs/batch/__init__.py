"""Answer many rows: in constant memory, in their order, by one process or by several.

answer_columns.py   an answer as the columns it becomes
chunks.py           rows in chunks that are bounded in number and in characters
workers.py          chunks in, chunks with answers out
files.py            files in, a file with answers out: what `textcls predict` calls
folder.py           files in, a folder with a file of answers for each out, by any engine
"""
