"""Which routes there are, and who answers them.

`routing` is what a route is, and `table` holds them all: the service's own (`native`, in the forms of `schemas`), the
page (`pages`) and other servers' formats (`wire`). `openapi` describes them.
"""
