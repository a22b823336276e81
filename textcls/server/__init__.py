"""Explained answers over HTTP.

`settings` is what an operator chooses, `registry` which models answer, `reload` how they are exchanged, `answers` the
pure function from a request's bytes to an answer's, `service` what the requests of a worker share, `gate` what every
request passes, `app` the documented routes, `protocol` and `run` the connections and processes around them.

Nothing is imported here, so that `textcls.server.settings` can be read without the extra `serve`.
"""
