"""The processes of the service: `run` starts one `server`, or several under a `supervisor`, and the `probes`."""
