"""The processes of the service: `run` starts a `server`, or several under a `supervisor`, and `probes` beside them."""
