"""A registry: the versions of a model in a folder, and which of them is promoted.

record.py   what a registry records about itself and its versions, as plain data that is checked when it is read
folder.py   the folder: its content, adding a version whole or not at all, and changing what is promoted

`textcls publish` and `textcls versions` write a registry; `textcls serve` follows it.
"""
