"""The routes and their handlers: FastAPI routers, from which `application` is built.

The service's own are `native` (with bodies from `schemas`), the page is in `pages`, other servers'
formats in `wire`, the OpenAPI description in `description`, and answers to requests without a route in `absent`.
`answering` turns errors into answers; `dependencies` check access.
"""
