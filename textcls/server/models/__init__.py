"""Which models answer, and how they are exchanged while they do, with the keys that may ask them.

`registry` names them. `loading` reads and tests the operator's files where they can do no harm, `reload` writes down
what all workers serve, and `watching` asks for that when the files have been replaced, as their `file_stamps` show.
"""
