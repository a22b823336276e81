"""Monitoring: `metrics`, `logs`, the `audit` trail and spans (`tracing`).

These modules do not depend on the service, which calls them. Probes are answered by `processes.probes`.
"""
