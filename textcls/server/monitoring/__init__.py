"""What is told to those who watch over the service: `metrics`, `logs`, the `audit` trail and spans (`tracing`).

They know nothing of the service: it tells them. Probes are answered elsewhere, by `processes.probes`.
"""
