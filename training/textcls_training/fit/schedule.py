"""The schedule of learning rates, and the constants of AdamW, which updates the few dense weights."""

# Decay rates of the running means of gradients and of their squares; what is added to the root of the latter.
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def rate_factor(step: int, steps: int, warmup: float) -> float:
    """Return the factor of the full rates: rising linearly for a share `warmup` of the steps, then falling to zero."""
    rising = max(1.0, warmup * steps)
    return min((step + 1) / rising, (steps - step) / max(1.0, steps - rising), 1.0)
