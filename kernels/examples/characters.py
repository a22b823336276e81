# ruff: noqa: T201
"""Next-token prediction by characters: metric attention against scaled dot product at the same number of weights.

    PYTHONPATH=kernels python kernels/examples/characters.py --output /tmp/characters

The text is "As You Like It" by William Shakespeare, in the public domain, byte for byte as the Canterbury corpus has it
(asyoulik.txt); `--text` takes another one. The first nine tenths are learned from, the rest is held out. Printed are
cost and perplexity of each model, mean and standard deviation over seeds, and what each writes; with `--output`
characters.json and characters.svg hold the figures and the curves of the loss.

The models differ in their attention alone, and in what the weights that metric attention saves are spent on:

    dot             scaled dot product
    metric          metric attention; a wider feed-forward layer makes up for the weights
    metric-light    metric attention in the same shape: what is saved is saved
    metric-heads    more heads of the same width, as many as fit; a wider feed-forward layer for the rest
    semidefinite    as metric, with a metric L L^T, which is a scalar product

The last two are trained where `--arms` names them.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, Final

import torch
from torch import Tensor

from examples.report import COLOURS, STYLE, can_draw, mean_and_spread, rounded, save_figures, save_picture, table
from examples.transformer import (
    Shape,
    Transformer,
    as_heavy_as,
    attention_products,
    attention_weights,
    cache,
    make,
    train,
    weights,
)

PLAY: Final = Path(__file__).parent / "as_you_like_it.txt"
LARGEST: Final = 10_000_000  # bytes of a text
POSITIONS, BATCH = 64, 16
HELD_OUT: Final = 0.1
LOOKS: Final = 12  # how often the held-out loss is looked at
ARMS: Final = ("dot", "metric", "metric-light", "metric-heads", "semidefinite")


@dataclass(frozen=True)
class Text:
    """A text as numbers of its characters: what is learned from, and what is held out, int64."""

    characters: str
    learned: Tensor
    held_out: Tensor


@dataclass(frozen=True)
class Run:
    """One training: held-out loss in nats a character after some of the steps, and what the model writes."""

    steps: list[int]
    losses: list[float]
    sample: str


def read_text(path: Path) -> Text:
    """Read a text in UTF-8.

    Raises:
        ValueError: it is larger than `LARGEST`, or its held-out tenth is shorter than a sequence.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST:,} bytes; take a part of it")
    text = content.decode("utf-8")
    characters = "".join(sorted(set(text)))
    number = {character: place for place, character in enumerate(characters)}
    number_N = torch.tensor([number[character] for character in text], dtype=torch.int64)
    cut = len(text) - int(len(text) * HELD_OUT)
    if len(text) - cut <= POSITIONS:
        raise ValueError(
            f"{path} has {len(text):,} characters; at least {int((POSITIONS + 1) / HELD_OUT):,} are needed"
        )
    return Text(characters, number_N[:cut], number_N[cut:])


def shape_of(arm: str, tokens: int) -> Shape:
    """Return the shape of a model; all but "metric-light" have as many weights as "dot", to a unit of a layer."""
    dot = Shape(tokens, POSITIONS, width=64, heads=4, head_width=16, hidden=256, blocks=2, attention="dot")
    metric = replace(dot, attention="metric")
    if arm == "dot":
        return dot
    if arm == "metric-light":
        return metric
    if arm == "semidefinite":
        return as_heavy_as(replace(metric, attention="semidefinite"), dot)
    while arm == "metric-heads" and attention_weights(replace(metric, heads=metric.heads + 1)) <= attention_weights(
        dot
    ):
        metric = replace(metric, heads=metric.heads + 1)
    return as_heavy_as(metric, dot)


def batches(text_N: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return random passages and what follows each of their characters, int64 [B, N]."""
    start_B1 = torch.randint(len(text_N) - POSITIONS, (BATCH, 1), generator=generator)
    place_BN = start_B1 + torch.arange(POSITIONS)
    return text_N[place_BN], text_N[place_BN + 1]


@torch.no_grad()
def held_out_loss(model: Transformer, text_N: Tensor) -> float:
    """Return the mean cross entropy in nats of the characters of all whole passages, side by side."""
    passages = (len(text_N) - 1) // POSITIONS
    token_BN = text_N[: passages * POSITIONS].view(passages, POSITIONS)
    target_BN = text_N[1 : passages * POSITIONS + 1].view(passages, POSITIONS)
    return float(model.loss(token_BN, target_BN))


@torch.no_grad()
def write(model: Transformer, characters: str, length: int, seed: int, temperature: float = 0.8) -> str:
    """Return `length` characters that the model draws one after the other, after a line's end where there is one."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [max(0, characters.find("\n"))]
    for _ in range(length):
        scores_V = model(torch.tensor([drawn[-POSITIONS:]]))[0, -1] / temperature
        drawn.append(int(torch.multinomial(scores_V.softmax(0), 1, generator=generator)))
    return "".join(characters[place] for place in drawn[1:])


def learn(shape: Shape, text: Text, steps: int, rate: float, seed: int, length: int) -> Run:
    """Train one model; the same seed draws the same passages for every shape."""
    model, generator = make(shape, seed), torch.Generator().manual_seed(seed)
    run = Run([0], [held_out_loss(model, text.held_out)], "")

    def look(step: int) -> None:
        if step % max(1, steps // LOOKS) == 0 or step == steps:
            run.steps.append(step)
            run.losses.append(held_out_loss(model, text.held_out))

    train(model, lambda: batches(text.learned, generator), steps, rate, look)
    return replace(run, sample=write(model, text.characters, length, seed))


def cost_table(shapes: dict[str, Shape]) -> str:
    """Return what each model costs."""
    heads = ("model", "weights", "heads", "feed-forward", "attention weights", "products a token", "cache a token")
    rows = []
    for arm, shape in shapes.items():
        of_blocks = [count(shape) * shape.blocks for count in (attention_weights, attention_products, cache)]
        rows.append((arm, f"{weights(shape):,}", shape.heads, shape.hidden, *(f"{number:,}" for number in of_blocks)))
    return table(heads, rows)


def loss_table(runs: dict[str, list[Run]]) -> str:
    """Return loss and perplexity at the end, and the difference of the losses to "dot" seed by seed."""
    rows = []
    for arm, runs_of_arm in runs.items():
        last = [run.losses[-1] for run in runs_of_arm]
        gap = [mine.losses[-1] - dots.losses[-1] for mine, dots in zip(runs_of_arm, runs.get("dot", []), strict=False)]
        against = mean_and_spread(gap) if gap and arm != "dot" else ""
        rows.append((arm, mean_and_spread(last), mean_and_spread([math.exp(loss) for loss in last], 2), against))
    return table(("model", "held-out loss, nats", "perplexity", "loss less that of dot"), rows)


def draw(runs: dict[str, list[Run]], path: Path) -> None:
    """Draw the held-out losses: the mean over seeds as a line, all seeds as a band."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.5, 3.2))
        axes = figure.subplots()
        for (arm, runs_of_arm), colour in zip(runs.items(), COLOURS, strict=False):
            steps = runs_of_arm[0].steps[1:]
            losses = list(zip(*(run.losses[1:] for run in runs_of_arm), strict=True))
            axes.plot(steps, [mean(values) for values in losses], color=colour, label=arm)
            axes.fill_between(steps, list(map(min, losses)), list(map(max, losses)), color=colour, alpha=0.15, lw=0)
        axes.set(xlabel="steps", ylabel="held-out loss, nats a character")
        axes.legend(frameon=False)
        save_picture(figure, path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train each model once a seed and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=PLAY, help="a text in UTF-8 in the place of the play")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3, help="how many trainings of each model")
    parser.add_argument("--rate", type=float, default=8e-3, help="the highest learning rate")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS[:3]), help="which models")
    parser.add_argument("--sample", type=int, default=200, help="how many characters each model writes")
    parser.add_argument("--output", type=Path, help="a folder for characters.json and characters.svg")
    chosen = parser.parse_args(arguments)
    if min(chosen.steps, chosen.seeds) < 1:
        parser.error("--steps and --seeds are at least 1")
    try:
        text = read_text(chosen.text)
    except (OSError, ValueError) as error:
        parser.error(f"--text cannot be used: {error}")
    torch.set_num_threads(1)  # the products are small, and sums are then in one order on every machine
    shapes = {arm: shape_of(arm, len(text.characters)) for arm in dict.fromkeys(chosen.arms)}
    print(cost_table(shapes), flush=True)
    runs: dict[str, list[Run]] = {arm: [] for arm in shapes}
    for seed in range(chosen.seeds):
        for arm, shape in shapes.items():
            runs[arm].append(learn(shape, text, chosen.steps, chosen.rate, seed, chosen.sample))
            print(f"seed {seed}, {arm}: held-out loss {runs[arm][-1].losses[-1]:.4f}", flush=True)
    print("\n" + loss_table(runs))
    for arm, runs_of_arm in runs.items():
        print(f"\n{arm} writes:\n{runs_of_arm[0].sample}")
    if chosen.output:
        save(chosen.output, vars(chosen), shapes, runs)


def save(folder: Path, settings: dict[str, Any], shapes: dict[str, Shape], runs: dict[str, list[Run]]) -> None:
    """Write the figures, and the picture where it can be drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in settings.items() if name not in ("text", "output")}
    models = {
        arm: {"shape": asdict(shape), "weights": weights(shape), "runs": [_kept(run) for run in runs[arm]]}
        for arm, shape in shapes.items()
    }
    save_figures(folder / "characters.json", kept, {"models": models})
    if can_draw():
        draw(runs, folder / "characters.svg")


def _kept(run: Run) -> dict[str, Any]:
    return asdict(run) | {"losses": rounded(run.losses)}


if __name__ == "__main__":
    main()
