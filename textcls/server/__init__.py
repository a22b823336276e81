"""Explained answers over HTTP.

A request comes in by `http`, from the socket to its route; `routes` says who answers it, and in which wire format. What
asks about texts goes to `service`, which requests of a worker share, and from there to `inference`. `models` is what
answers, and how it is exchanged; `admission` who may ask, how much and how often; `monitoring` what is told of it all.
`processes` start, answer and stop, with what `system` asks of the operating system. `settings` is what an operator
chooses, `problems` what errors look like.

Nothing is imported here, so that `textcls.server.settings` can be read without the extra `serve`.
"""
