"""Which routes there are, and who answers them: routers of FastAPI, of which `application` is made.

The service's own are `native` and `teaching` (in the forms of `schemas`), the page is `pages`, other servers' formats
are `wire`, what describes them all is `description`, and what is said where nobody answers is `absent`. `answering`
turns errors into answers; `dependencies` say who may ask.
"""
