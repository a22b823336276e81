"""Answer many rows: in constant memory, in their order, in one process or several.

answer_columns.py   the columns of an answer
chunks.py           chunks of rows, bounded in number and in characters
workers.py          chunks in, chunks with answers out
files.py            files in, a file with answers out: what `textcls predict` calls
folder.py           files in, a folder with one file of answers for each out, by any engine
"""
