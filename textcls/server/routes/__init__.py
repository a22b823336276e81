"""Which routes there are, and who answers them.

`routing` is what a route is, and `table` holds them all: those of the service itself (`native`), the page (`pages`) and
other servers' formats (`wire`). `openapi` describes them.
"""
