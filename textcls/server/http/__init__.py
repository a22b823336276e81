"""From the socket to the application and back, in the order in which a request passes through.

`listening` opens the socket and `accepting` takes connections from it; `protocol` limits what a connection may send;
every request passes the `gate`; `exchange` is one request, and `response` its answer.
"""
