"""Threads of a training: one of PyTorch, and jobs beside it."""

import threading

import pytest
import torch

from textcls_training.fit.threads import in_second_thread, reproducible


def test_the_caller_keeps_its_threads_and_its_generator() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    torch.set_num_threads(2)
    try:
        with reproducible(0):
            assert torch.get_num_threads() == 1
            torch.rand(7)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.rand(1) == expected


def test_jobs_run_one_after_the_other_beside_the_block_which_waits_for_them() -> None:
    order: list[str] = []
    begun, may_end = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert may_end.wait(10)
        order.append("first")

    with in_second_thread([first, lambda: order.append("second")], lambda: order.append("cancelled")):
        assert begun.wait(10)
        order.append("block")
        may_end.set()
    assert order == ["block", "first", "second"]


def test_an_error_in_the_block_cancels_the_job_that_runs_and_drops_the_others() -> None:
    order: list[str] = []
    begun, cancelled = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert cancelled.wait(10)
        order.append("first ended")

    def block() -> None:
        assert begun.wait(10)
        raise ValueError("broken")

    with (
        pytest.raises(ValueError, match=r"^broken$"),
        in_second_thread([first, lambda: order.append("second")], cancelled.set),
    ):
        block()
    assert order == ["first ended"]


def test_an_error_in_a_job_is_raised_once_the_block_is_done() -> None:
    order: list[str] = []

    def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"), in_second_thread([broken], lambda: order.append("cancelled")):
        order.append("block")
    assert order == ["block", "cancelled"]
