"""From the socket to the application and back, in the order in which a request comes through.

`listening` opens the socket and `accepting` takes connections from it; `protocol` bounds what a connection may send;
the `gate` is what every request passes; `exchange` is one request, and `response` its answer.
"""
