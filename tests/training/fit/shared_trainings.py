"""What processes that share steps come to, as a program that torchrun starts: each writes it into a folder."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.training.fit.compiled.test_compiled import HARD, SEVERAL, SOFT, VECTORS, WEIGHTS, configuration, dataset
from textcls.errors import ConfigError
from textcls_torch.fit.trainer import Trainer
from textcls_torch.pretraining.masked import run as masked
from textcls_torch.pretraining.masked import trainer as masked_trainer
from textcls_training.config.pretraining import PretrainConfig
from textcls_training.config.settings import ModelConfig, OptimConfig
from textcls_training.data.dataset import Dataset
from textcls_training.data.unlabelled import UnlabelledText, UnlabelledTexts
from textcls_training.fit.callbacks import NOBODY
from textcls_training.fit.interrupt import Stop
from textcls_training.fit.processes import Processes, here, joined
from textcls_training.fit.threads import reproducible
from textcls_training.pretraining.texts import PretrainingTexts

# Every other token of each text.
MARKED = dataset(rationale=np.arange(len(HARD.corpus.token)) % 2 == 0)
LAMBDA = ModelConfig(dim=8, mixing="lambda")
OPTIM = OptimConfig(batch_size=5, table_std=1.0, table_accumulator=0.1)
CASES: dict[str, tuple[Dataset, dict[str, Any]]] = {
    "hard targets": (HARD, {"model": LAMBDA}),
    "mixed values": (HARD, {"model": ModelConfig(dim=8, mixing="gmlp", values="mixed")}),
    "several labels": (SEVERAL, {"model": LAMBDA}),
    "soft targets and weights": (dataset(probability_RC=SOFT, weight_R=WEIGHTS), {"model": LAMBDA}),
    "rationales": (MARKED, {"model": LAMBDA}),
    "bits": (HARD, {"model": ModelConfig(dim=8, embedding="bits"), "ngrams": (), "bigrams": False}),
    "vectors of words": (HARD, {"word_vectors": VECTORS}),
    # Of some steps there are fewer texts than processes, and of others fewer than shards.
    "steps of two texts": (HARD, {"model": LAMBDA, "optim": replace(OPTIM, batch_size=2)}),
}
MIXINGS = ("none", "lambda", "gmlp")


def trainer_of(case: str, shards: int = 4) -> Trainer:
    data, more = CASES[case]
    config = configuration(data, **{"optim": OPTIM, **more})
    return Trainer(data, 3, replace(config, impl="reference", shards=shards))


def trained(case: str) -> dict[str, str]:
    """Hashes of what a trainer has learned in three epochs, and of its answers."""
    with reproducible(0):
        trainer = trainer_of(case)
        trainer.train(3)
        found = {name: array.tobytes() for name, array in trainer.arrays().items()}
        found["answers"] = trainer.predict(trainer.encoded, batch_size=2).tobytes()
    return {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}


def pretraining_texts(texts: int = 150) -> PretrainingTexts:
    rng = np.random.default_rng(0)
    rows = [" ".join(f"w{i}" for i in rng.integers(30, size=rng.integers(1, 9))) for _ in range(texts)]
    return PretrainingTexts.of(UnlabelledTexts.sample(map(UnlabelledText, rows), 1000, ()))


def pretrained(mixing: str, *, on_device: bool = False) -> dict[str, str]:
    """Hashes of what has been learned of masked words in two epochs; a text of one word has nothing to be guessed.

    Tables are on the device, as on a GPU with Triton, if `on_device` says so.
    """
    config = PretrainConfig(objective="masked", mixing=mixing, dim=8, epochs=2, device="cpu", shards=5)
    with reproducible(0), patch.object(masked_trainer, "runs_kernels", return_value=on_device):
        trainer, _ = masked.train(pretraining_texts(), config, NOBODY, Stop())
    arrays = [trainer.embedding.table.row_VD, trainer.words.row_VD]
    arrays += [weight.detach().numpy() for weight in trainer.model.parameters()]
    return {str(i): hashlib.sha256(array.tobytes()).hexdigest() for i, array in enumerate(arrays)}


def everything() -> dict[str, dict[str, str]]:
    found = {case: trained(case) for case in CASES} | {f"masked, {mixing}": pretrained(mixing) for mixing in MIXINGS}
    return found | {"masked, on the device": pretrained("lambda", on_device=True)}


def main(folder: Path) -> None:
    with joined() as processes:
        assert here() is processes
        told = f"of process {processes.rank}"
        found: dict[str, Any] = {"learned": everything(), "by first": processes.by_first(lambda: told)}
        processes.agree("number", processes.number)
        found["refused"] = refused(processes)
        sys.stdout.write(f"{told}\n")
    (folder / f"{processes.rank}.json").write_text(json.dumps(found))


def refused(processes: Processes) -> str:
    try:
        processes.agree("rank", processes.rank)
    except ConfigError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
