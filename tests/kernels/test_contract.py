"""The rules about arguments, the choice of an implementation, and the import without Triton."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import textcls_kernels
from textcls_kernels import (
    metric_attention,
    pack_metric,
    packed_texts,
    resolve_impl,
    seed_metric_attention,
    unpack_metric,
)
from textcls_kernels.impl import Impl

ROOT = Path(__file__).parents[2]
NEEDS_TRITON = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)
P, METRIC, SEEDS = torch.zeros(2, 3, 5, 8), torch.zeros(3, 36), torch.zeros(3, 2, 8)
ONE = torch.ones(1, dtype=torch.int64)

REFUSED: list[tuple[type[Exception], dict[str, Any], str]] = [
    (ValueError, {"p": P[0]}, "p of a padded batch is [B, H, N, K]; expected 4 dimensions, got [3, 5, 8]"),
    (ValueError, {"cu_lengths": ONE}, "[T, H, K]; expected 3 dimensions, got [2, 3, 5, 8]"),
    (ValueError, {"p": P[0], "cu_lengths": ONE[:0]}, "0 and the end of each text; expected [B + 1], got [0]"),
    (ValueError, {"lengths": ONE}, "lengths holds one number a text; expected [2], got [1]"),
    (ValueError, {"lengths": ONE, "cu_lengths": ONE}, "padded or packed, not both; expected lengths or cu_lengths"),
    (ValueError, {"p": P[..., :7]}, "the width K of a head is bounded; expected 8 <= K <= 128, got K = 7"),
    (ValueError, {"metric": METRIC[:2]}, "expected [3, 36] or [3, 8, 8], got [2, 36] (the packed numbers of 2 heads"),
    (ValueError, {"metric": METRIC[:, :35]}, "expected [3, 36] or [3, 8, 8], got [3, 35]"),
    (TypeError, {"p": P.long()}, "p is floating; expected one of [torch.float16"),
    (TypeError, {"metric": METRIC.half()}, "metric has p's type or float32; expected torch.float32 or float32, got"),
    (TypeError, {"lengths": torch.ones(2)}, "expected int32 or int64, got torch.float32"),
    (ValueError, {"metric": METRIC.to("meta")}, "metric lies where p lies; expected cpu, got meta"),
    (ValueError, {"impl": "cuda"}, "expected one of ['auto', 'reference', 'triton'"),
]


ENDS: list[tuple[list[int], str]] = [
    ([1, 5], "cu_lengths starts at 0; expected 0, got 1"),
    ([-1, 5], "cu_lengths starts at 0; expected 0, got -1"),
    ([0, 4, 3, 5], "cu_lengths does not decrease, but does at place 2; expected >= 4, got 3"),
    ([0, 9, 5], "cu_lengths does not decrease, but does at place 2; expected >= 9, got 5"),
    ([0, 4], "cu_lengths ends at the number of p's rows; expected 5, got 4"),
    ([0, 6], "cu_lengths ends at the number of p's rows; expected 5, got 6"),
    ([0], "cu_lengths ends at the number of p's rows; expected 5, got 0"),
]


@pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=NEEDS_TRITON)])
@pytest.mark.parametrize(
    ("ends", "text", "compiled"),
    [*((*case, False) for case in ENDS), *((*case, True) for case in ENDS[:5:2])],  # traced, a case of each sentence
)
def test_wrong_ends_of_texts_are_refused_alike_by_every_implementation(
    ends: list[int], text: str, compiled: bool, impl: Impl
) -> None:
    cu, p, metric = torch.tensor(ends), torch.zeros(5, 2, 8), METRIC[:2]

    def attend(cu: torch.Tensor) -> torch.Tensor:
        return metric_attention(p, metric, cu_lengths=cu, impl=impl)

    def pool(cu: torch.Tensor) -> torch.Tensor:
        return seed_metric_attention(SEEDS[:2], p, metric, cu_lengths=cu, impl=impl)[0]

    for function in (attend, pool):
        run = torch.compile(function, backend="eager", fullgraph=True) if compiled else function
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            run(cu)
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        packed_texts(cu, 5)


def test_wrong_type_place_or_rows_of_packed_texts_are_refused() -> None:
    p, metric = torch.zeros(5, 3, 8), METRIC
    with pytest.raises(TypeError, match="cu_lengths counts positions; expected int32 or int64"):
        packed_texts(torch.tensor([0, 5], dtype=torch.int16), 5)
    with pytest.raises(ValueError, match="cu_lengths lies where p lies; expected cpu, got meta"):
        metric_attention(p, metric, cu_lengths=torch.tensor([0, 5], device="meta"))
    with pytest.raises(ValueError, match="another number of rows than p has; expected 6, got 5"):
        metric_attention(p, metric, cu_lengths=packed_texts(torch.tensor([0, 6]), 6))


@pytest.mark.parametrize(("error", "change", "text"), REFUSED, ids=[text[:40] for _, _, text in REFUSED])
def test_broken_rule_is_named_with_expected_and_got(error: type[Exception], change: dict[str, Any], text: str) -> None:
    arguments = {"p": P, "metric": METRIC} | change
    with pytest.raises(error, match=re.escape(text)):
        metric_attention(**arguments)
    with pytest.raises(error, match=re.escape(text)):
        seed_metric_attention(SEEDS, **arguments)


def test_broken_rule_of_seeds_is_named() -> None:
    message = "seeds are [H, S, K] for p's H and K; expected [3, 'S', 8], got [2, 2, 8]"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        seed_metric_attention(SEEDS[:2], P, METRIC)
    with pytest.raises(ValueError, match="expected 1 <= S <= 16, got S = 17"):
        seed_metric_attention(torch.zeros(3, 17, 8), P, METRIC)


def test_broken_rule_of_packing_is_named() -> None:
    with pytest.raises(ValueError, match=re.escape("expected a square matrix a head, got [3, 36]")):
        pack_metric(METRIC)
    with pytest.raises(ValueError, match=re.escape("expected L = 36, 300, 528, ..., got [3, 35]")):
        unpack_metric(METRIC[:, :35])


def test_device_alone_decides_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert resolve_impl("cpu") == "reference"
    assert resolve_impl("cuda") == "triton"
    assert resolve_impl("cuda", "reference") == "reference"
    with pytest.raises(ValueError, match="expected tensors on a cuda device, got cpu"):
        resolve_impl("cpu", "triton")


def test_missing_triton_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for device in ("cpu", "cuda"):
        with pytest.raises(ModuleNotFoundError, match=re.escape('pip install "textcls[kernels]"')):
            resolve_impl(device, "triton")
    with pytest.raises(ModuleNotFoundError, match="impl='reference'"):
        resolve_impl("cuda")


def test_package_works_with_triton_unimportable() -> None:
    code = """
import sys
sys.modules["triton"] = None
import torch
import textcls_kernels
from textcls_kernels.testing import make_inputs
assert not {"textcls", "textcls_training", "textcls_torch"} & set(sys.modules), "imports ours"
p, metric = make_inputs((2, 2, 5, 8))
textcls_kernels.metric_attention(p.requires_grad_(), metric).sum().backward()
print(textcls_kernels.resolve_impl(p.device))
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "kernels"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "reference\n"), done.stderr


def test_public_names_are_those_of_the_readme() -> None:
    assert textcls_kernels.__all__ == [
        "PackedTexts",
        "metric_attention",
        "pack_metric",
        "packed_texts",
        "resolve_impl",
        "seed_metric_attention",
        "unpack_metric",
    ]
    assert all(hasattr(textcls_kernels, name) for name in textcls_kernels.__all__)


def test_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "kernels" / "README.md").read_text()
    first, table, encoded, readout = (block.split("```")[0] for block in text.split("```python\n")[1:])
    names, rows, read = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    # By chance a weight may be so near 0 that a row does not move.
    torch.manual_seed(0)
    exec(first, names)
    exec(table, rows)
    exec(encoded, rows)
    assert (rows["x"].shape, rows["squared_norm"].shape) == ((3, 32), (3,))
    assert (rows["total"] > 0.01).nonzero().flatten().tolist() == [3, 7, 9]
    assert rows["uses"].row_R.tolist() == [3, 4, 23, 24, 3, 4, 20, 21, 9, 21, 22, 50, 50, 51, 0, 0]
    assert rows["uses"].start_X.tolist() == [0, 4, 4, 8, 11, 12, 12, 13, 14]
    assert (names["t"].shape, names["pooled"].shape, names["weight"].shape) == (
        (2, 4, 10, 32),
        (2, 4, 1, 32),
        (2, 4, 1, 10),
    )
    assert capsys.readouterr().out == "reference\n"
    exec(readout, read)
    assert read["x"].grad.shape == read["x"].shape
    assert capsys.readouterr().out == "True\n"
