"""One self-contained HTML page."""

from textcls_training.explaining.results import BenchmarkResult


def require() -> None: ...
def render(result: BenchmarkResult) -> str:
    return ""
