"""A registry: the versions of a model in a folder, and which of them is promoted.

record.py   what a registry says of itself and of its versions, as plain data that is checked when it is read
folder.py   the folder: what is in it, adding a version whole or not at all, and changing what is promoted

`textcls publish` and `textcls versions` write it, `textcls serve` follows it.
"""
