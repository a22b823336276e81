"""What the spatial weights of a gMLP learn from masked words, and whether it needs a position embedding.

    pip install 'textcls[torch]' matplotlib
    python benchmarks/spatial_weights.py DATA/sst2

Three models of masked words learn from the texts of train.csv: with a full matrix over the first 128 tokens, with the
banded Toeplitz matrix that --mixing gmlp has, and with the latter and a learned position embedding before it. Said of
each: the perplexity of held-out texts; of the full matrix, how much of it the means of its diagonals explain, all of a
Toeplitz matrix, and of noise about 2 / tokens. Written are .svg, a picture of the matrices, and .json.
"""

import json
import time
from pathlib import Path
from typing import Any, Final

import click
import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from common import FOLDERS, ROOT, about, headline
from plots import STYLE
from textcls_torch.fit.optim import AdamWGroup
from textcls_torch.models.mixing.gmlp import FullGate, GatedMLP, ToeplitzGate
from textcls_torch.models.ops import mixing as ops
from textcls_torch.pretraining.masked.held_out import HeldOutScores
from textcls_torch.pretraining.masked.trainer import MIXING_RATE, MaskedTrainer
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.data.arrays import Float32
from textcls_training.data.corpus import Corpus
from textcls_training.fit.callbacks import NOBODY
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.texts import PretrainingTexts, read_texts
from textcls_training.pretraining.vocabulary import Vocabulary

FULL, TOEPLITZ, POSITIONS = "gmlp:full", "gmlp", "gmlp with positions"
MOST_TOKENS: Final = 128


class Positioned(nn.Module):
    """A mixer that sees, beside each token, a learned vector of its place."""

    def __init__(self, mixer: nn.Module, dim: int) -> None:
        super().__init__()
        self.mixer, self.place_TD = mixer, nn.Parameter(torch.zeros(MOST_TOKENS, dim))

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, D]."""
        placed_BTD = x_BTD + self.place_TD[: x_BTD.shape[1]] * mask_BT.unsqueeze(-1)
        mixed_BTD: Tensor = self.mixer(placed_BTD, mask_BT)
        return mixed_BTD


def learn(texts: PretrainingTexts, model: str, dim: int, epochs: int) -> tuple[MaskedTrainer, HeldOutScores]:
    """Return a model of masked words, and what held-out texts say of it."""
    config = PretrainConfig(
        objective="masked", mixing=model.partition(" ")[0], dim=dim, epochs=epochs, max_tokens=MOST_TOKENS, device="cpu"
    )
    with reproducible(config.seed):
        corpus = Corpus.of(texts.train, MOST_TOKENS)
        trainer = MaskedTrainer(corpus, Vocabulary.of(corpus, config.words), config, epochs)
        mixing = trainer.model.mixing
        assert mixing is not None
        if model == POSITIONS:
            mixing.mixer = Positioned(mixing.mixer, dim)
            trainer.dense = AdamWGroup(trainer.model.parameters(), MIXING_RATE)
        for number in range(1, epochs + 1):
            trainer.train_epoch(number, NOBODY, Stop())
        found = HeldOutScores.of(trainer, Corpus.of(texts.held_out, MOST_TOKENS))
    assert found is not None
    return trainer, found


def weights(trainer: MaskedTrainer, tokens: int) -> Float32:
    """Return the learned matrix of a gMLP over the first tokens [tokens, tokens]."""
    assert trainer.model.mixing is not None
    mixer = trainer.model.mixing.mixer
    assert isinstance(mixer, GatedMLP)
    gate = mixer.gate
    with torch.no_grad():
        if isinstance(gate, FullGate):
            found: Float32 = gate.weight_NN[:tokens, :tokens].numpy()
        else:
            assert isinstance(gate, ToeplitzGate)
            found = ops.toeplitz(gate.filter_W, tokens).numpy()
    return found


def toeplitz_share(matrix_NN: Float32) -> float:
    """Return which share of the sum of squares of a matrix the means of its diagonals explain."""
    size = len(matrix_NN)
    means = [np.diagonal(matrix_NN, offset).mean() ** 2 * (size - abs(offset)) for offset in range(1 - size, size)]
    return float(sum(means) / np.square(matrix_NN).sum())


def draw(found: dict[str, Float32], path: Path) -> None:
    """Draw the matrices side by side to the SVG file at `path`."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * len(found), 3.6), layout="constrained")
        for place, (name, matrix_NN) in enumerate(found.items(), 1):
            axes = figure.add_subplot(1, len(found), place)
            most = float(np.abs(matrix_NN).max())
            axes.imshow(matrix_NN, cmap="RdBu_r", vmin=-most, vmax=most)
            axes.set_title(name)
            axes.set_xlabel("token that is seen")
            axes.set_ylabel("token that sees")
        figure.savefig(path, metadata={"Date": None})


@click.command()
@FOLDERS
@click.option("--tokens", default=24, show_default=True, help="Of the matrix, as many rows and columns are looked at.")
@click.option("--dim", default=64, show_default=True)
@click.option("--epochs", default=15, show_default=True)
@click.option(
    "--output",
    default=ROOT / "benchmarks" / "spatial_weights",
    type=click.Path(path_type=Path),
    help="Without suffix.  [default: benchmarks/spatial_weights]",
)
def main(data: tuple[Path, ...], tokens: int, dim: int, epochs: int, output: Path) -> None:
    """Learn the three models from the texts of the data set in DATA, and draw the weights."""
    texts, _ = read_texts([data[0] / "train.csv"], ["text"], limit=1_000_000)
    told: dict[str, Any] = {"about": about(), "set": data[0].name, "dim": dim, "epochs": epochs, "models": {}}
    matrices: dict[str, Float32] = {}
    for model in (FULL, TOEPLITZ, POSITIONS):
        start = time.process_time()
        trainer, scores = learn(texts, model, dim, epochs)
        one = {"perplexity": scores.perplexity, "frequency_perplexity": scores.frequency_perplexity}
        one |= {"accuracy": scores.accuracy, "gate": trainer.model.gate, "seconds": time.process_time() - start}
        if model != POSITIONS:
            matrices[model] = weights(trainer, tokens)
            one["toeplitz_share"] = toeplitz_share(matrices[model])
        told["models"][model] = one
        click.echo(f"{model}: " + ", ".join(f"{name} {value:.3f}" for name, value in one.items()))
    noise = np.random.default_rng(0).standard_normal((tokens, tokens)).astype(np.float32)
    told["toeplitz_share_of_noise"] = toeplitz_share(noise)
    click.echo(f"{headline(told['about'])} Of noise the diagonals explain {told['toeplitz_share_of_noise']:.3f}.")
    output.with_name(output.name + ".json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    draw(matrices, output.with_name(output.name + ".svg"))


if __name__ == "__main__":
    main()
