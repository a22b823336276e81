"""What any room may need and no caller of the package should.

atomic_write.py            a file that appears whole or not at all
file_lock.py               one process at a time
optional_dependencies.py   the packages of the extras, and the one way to say which is missing
interrupts.py              what Ctrl-C must not cut in two
"""
