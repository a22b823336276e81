"""From the socket to the route and back, in the order in which a request comes through.

`listening` opens the socket and `accepting` takes connections from it; `protocol` bounds what a connection may send;
`app` stands before the `gate` that every request passes; `exchange` is one request and its answer.
"""
