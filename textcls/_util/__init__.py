"""What any room may need and no caller of the package should.

addresses.py               where paths are meant
atomic_write.py            a file that appears whole or not at all
file_lock.py               one process at a time
optional_dependencies.py   the packages of the extras, and the one way to say which is missing
in_notebooks.py            results that notebooks show as pages
interrupts.py              what signals that end a program must not cut in two
memory.py                  how much of it there is: of the machine, or of the container
spill.py                   arrays in memory or in files without a name
"""
