"""The served models, and how they and the keys are exchanged while the service runs.

`registry` resolves their names. `loading` reads and tests the operator's files where they can do no harm, `store`
records what all workers serve, `reload` requests that, and so does `watching` when `file_stamps` show replaced files.
"""
