"""The dense weights move as `torch.optim.AdamW` moves them."""

import subprocess
import sys

import torch

from textcls_torch.fit.optim import AdamWGroup

RATE, DECAY = 0.1, 0.5


def test_steps_equal_those_of_pytorchs_adamw() -> None:
    torch.manual_seed(0)
    ours = [torch.randn(3, 4).requires_grad_(), torch.randn(5).requires_grad_()]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    group = AdamWGroup(ours, RATE, DECAY)
    reference = torch.optim.AdamW(theirs, lr=RATE, weight_decay=DECAY, fused=True)
    for factor in (0.3, 1.0, 0.5):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            other.grad = mine.grad.clone()
        group.step(factor)
        reference.param_groups[0]["lr"] = factor * RATE
        reference.step()
        assert all(p.grad is None for p in ours)
        assert all(torch.equal(mine, other) for mine, other in zip(ours, theirs, strict=True))


def test_weights_without_a_gradient_stay() -> None:
    weight = torch.ones(2).requires_grad_()
    AdamWGroup([weight], RATE, DECAY).step(1.0)
    assert torch.equal(weight, torch.ones(2))


def test_a_step_does_not_import_pytorchs_compiler() -> None:
    """It takes longer than training on a thousand texts does."""
    code = """
import sys, torch
from textcls_torch.fit.optim import AdamWGroup
weight = torch.ones(2).requires_grad_()
weight.sum().backward()
AdamWGroup([weight], 0.1).step(1.0)
sys.exit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
