# ruff: noqa: T201
"""The array sorter: one block learns to sort arrays of 1, 2 and 3, and shows what its heads have learned.

    PYTHONPATH=kernels python kernels/examples/array_sorter.py --output /tmp/sorter

A model reads an array and writes it sorted, token by token. Of all 729 arrays of six numbers a quarter is held out.
Printed is the share of held-out arrays that are sorted without a mistake, and of the first seed what each head says of
the three tokens:

    metric            the distance that it induces, sqrt((p_i - p_j) M (p_i - p_j)): 0 to itself, the same both ways
    scaled dot product  the score x_i W_q W_k^T x_j / sqrt(K) of i as a query and j as a key: the nearest that it has

A token is taken with the mean of all positions, after the norm of the block. With `--output`, array_sorter.json holds
the figures and array_sorter.svg the pictures: these tables, and the matrices M and W_q W_k^T themselves.

M is L L^T here ("semidefinite"), so that a distance is one: without that a square may be below 0.
"""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, Final

import torch
from torch import Tensor

from examples.report import STYLE, can_draw, mean_and_spread, rounded, save_figures, save_picture, table
from examples.transformer import (
    IGNORED,
    Block,
    DotAttention,
    MetricAttention,
    Shape,
    Transformer,
    as_heavy_as,
    make,
    train,
    weights,
)

SYMBOLS, LENGTH = 3, 6
BATCH: Final = 32
HELD_OUT: Final = 0.25
DOT: Final = Shape(SYMBOLS, 2 * LENGTH - 1, width=48, heads=3, head_width=16, hidden=96, blocks=1, attention="dot")


@dataclass(frozen=True)
class Arrays:
    """Sequences for the model, int64 [R, N]: an array and its sorted form but for the last token; and the targets."""

    token_RN: Tensor
    target_RN: Tensor


@dataclass(frozen=True)
class Heads:
    """What the heads of the one block say: of the tokens, [H][V][V], and their matrices, [H][K][K] or [H][D][D]."""

    tokens: list[list[list[float]]]
    matrices: list[list[list[float]]]


def arrays() -> tuple[Arrays, Arrays]:
    """Return what is learned from and what is held out, always the same."""
    array_RL = torch.tensor(list(itertools.product(range(SYMBOLS), repeat=LENGTH)))
    whole_RN = torch.cat([array_RL, array_RL.sort(1).values], 1)
    target_RN = whole_RN[:, 1:].clone()
    target_RN[:, : LENGTH - 1] = IGNORED
    order_R = torch.randperm(len(array_RL), generator=torch.Generator().manual_seed(0))
    cut = int(len(order_R) * HELD_OUT)
    held_out, learned = (Arrays(whole_RN[rows_R, :-1], target_RN[rows_R]) for rows_R in (order_R[:cut], order_R[cut:]))
    return learned, held_out


@torch.no_grad()
def share_sorted(model: Transformer, rows: Arrays) -> float:
    """Return the share of arrays that are written sorted without a mistake.

    A model that is right after every right beginning is right when it reads what it wrote itself, too.
    """
    right_RN = model(rows.token_RN).argmax(-1) == rows.target_RN
    return float((right_RN | (rows.target_RN == IGNORED)).all(1).double().mean())


def learn(shape: Shape, learned: Arrays, steps: int, rate: float, seed: int) -> Transformer:
    """Train one model; the same seed draws the same arrays for every shape."""
    model, generator = make(shape, seed), torch.Generator().manual_seed(seed)

    def batch() -> tuple[Tensor, Tensor]:
        rows_B = torch.randint(len(learned.token_RN), (BATCH,), generator=generator)
        return learned.token_RN[rows_B], learned.target_RN[rows_B]

    train(model, batch, steps, rate)
    return model


@torch.no_grad()
def heads_of(model: Transformer) -> Heads:
    """Return what the heads of the first block have learned; see the module."""
    block = model.blocks[0]
    assert isinstance(block, Block)
    x_VD = block.norm(model.token.weight + model.position.weight.mean(0))
    attention, width = block.attention, model.shape.head_width
    if isinstance(attention, MetricAttention):
        p_HVK, metric_HKK = attention.project(x_VD[None])[0], attention.metric()
        gap_HVVK = p_HVK[:, :, None] - p_HVK[:, None]
        square_HVV = torch.einsum("hijk,hkl,hijl->hij", gap_HVVK, metric_HKK, gap_HVVK)
        return Heads(rounded(square_HVV.clamp(min=0).sqrt().tolist()), rounded(metric_HKK.tolist()))
    assert isinstance(attention, DotAttention)
    query_HKD, key_HKD, _ = attention.enter.weight.view(*attention.heads, -1)
    product_HDD = query_HKD.mT @ key_HKD
    score_HVV = x_VD @ product_HDD @ x_VD.T / width**0.5
    return Heads(rounded(score_HVV.tolist()), rounded(product_HDD.tolist()))


def in_order(distance_VV: list[list[float]]) -> bool:
    """Return whether 1 and 3 are further from each other than either is from 2: the order that is sorted by."""
    return distance_VV[0][2] > max(distance_VV[0][1], distance_VV[1][2])


def draw(heads: dict[str, Heads], path: Path) -> None:
    """Draw what each head says of the tokens, and below it its matrix."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        count = sum(len(of_model.tokens) for of_model in heads.values())
        figure = Figure(figsize=(1.45 * count, 3.3), layout="constrained")
        rows = figure.subplots(2, count, squeeze=False)
        column = 0
        for title, of_model in heads.items():
            for head, (said, matrix) in enumerate(zip(of_model.tokens, of_model.matrices, strict=True), 1):
                above, below = rows[:, column]
                above.imshow(said, cmap="viridis")
                above.set_title(f"{title}, head {head}", fontsize=7)
                above.set_xticks(range(SYMBOLS), range(1, SYMBOLS + 1))
                above.set_yticks(range(SYMBOLS), range(1, SYMBOLS + 1))
                for i, j in itertools.product(range(SYMBOLS), repeat=2):
                    place = {"ha": "center", "va": "center", "fontsize": 6, "color": "white"}
                    above.text(
                        j, i, f"{said[i][j]:.1f}", **place, bbox={"fc": "black", "alpha": 0.45, "lw": 0, "pad": 1}
                    )
                largest = max(abs(value) for row in matrix for value in row)
                below.imshow(matrix, cmap="RdBu", vmin=-largest, vmax=largest)
                below.set(xticks=[], yticks=[])
                column += 1
        save_picture(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both models once a seed and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3, help="how many trainings of each model")
    parser.add_argument("--rate", type=float, default=4e-3, help="the highest learning rate")
    parser.add_argument("--output", type=Path, help="a folder for array_sorter.json and array_sorter.svg")
    chosen = parser.parse_args(arguments)
    if min(chosen.steps, chosen.seeds) < 1:
        parser.error("--steps and --seeds are at least 1")
    torch.set_num_threads(1)  # the products are small, and sums are then in one order on every machine
    learned, held_out = arrays()
    shapes = {"dot": DOT, "metric": as_heavy_as(replace(DOT, attention="semidefinite"), DOT)}
    shares: dict[str, list[float]] = {name: [] for name in shapes}
    heads: dict[str, list[Heads]] = {name: [] for name in shapes}
    for seed, (name, shape) in itertools.product(range(chosen.seeds), shapes.items()):
        model = learn(shape, learned, chosen.steps, chosen.rate, seed)
        shares[name].append(share_sorted(model, held_out))
        heads[name].append(heads_of(model))
    rows = [(name, f"{weights(shapes[name]):,}", mean_and_spread(shares[name])) for name in shapes]
    print(table(("model", "weights", "held-out arrays sorted"), rows))
    for name, what in (("metric", "distances"), ("dot", "scores")):
        for head, said in enumerate(heads[name][0].tokens, 1):
            print(f"\n{what} of {name}, head {head}:")
            print("\n".join("  ".join(f"{value:6.2f}" for value in row) for row in said))
    ordered = [mean(map(in_order, of_model.tokens)) for of_model in heads["metric"]]
    print(f"\nheads of the metric in which 1 and 3 are furthest from each other: {mean(ordered):.0%} over all seeds")
    if chosen.output:
        save(chosen.output, vars(chosen), shares, heads)


def save(folder: Path, settings: dict[str, Any], shares: dict[str, list[float]], heads: dict[str, list[Heads]]) -> None:
    """Write the figures, and the pictures of the first seed where they can be drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in settings.items() if name != "output"}
    tokens = {name: [of_model.tokens for of_model in of_seeds] for name, of_seeds in heads.items()}
    save_figures(folder / "array_sorter.json", kept, {"held_out_sorted": shares, "tokens": tokens})
    if can_draw():
        draw({name: of_seeds[0] for name, of_seeds in sorted(heads.items(), reverse=True)}, folder / "array_sorter.svg")


if __name__ == "__main__":
    main()
