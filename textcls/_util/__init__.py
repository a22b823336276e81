"""Helpers for all parts of the package, not meant for its users.

addresses.py               addresses given where paths are expected
atomic_write.py            a file that appears whole or not at all
file_lock.py               one process at a time
optional_dependencies.py   the packages of the extras, and the one way to report a missing one
in_notebooks.py            results that notebooks show as pages
interrupts.py              code that signals that end a program must not interrupt
memory.py                  how much memory there is: of the machine, or of the container
spill.py                   arrays in memory or in files without a name
"""
