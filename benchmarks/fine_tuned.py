"""Tune a sentence encoder, all its weights, on data sets, for what a small model gives up and for what.

    pip install 'textcls[teacher]' -r benchmarks/requirements.txt
    python benchmarks/fine_tuned.py all-MiniLM-L6-v2 DATA/sst2 DATA/trec6 --output benchmarks/fine_tuned.md

DATA is as for compare.py. The mean of the last layer's tokens goes through a linear layer; AdamW at 7e-5, which falls
to zero after a warm-up over 6 % of the steps, three passes, batches of 32 texts, in bfloat16. Nothing of it was chosen
by a test set, and nothing by the data set: it is what guides to such encoders propose.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
import torch
from torch.nn.functional import cross_entropy

from common import FOLDERS, about, data_sets, headline, read
from measure import Figures, Float, Trained, figures
from runner import markdown_table

EPOCHS: Final = 3
BATCH: Final = 32
RATE: Final = 7e-5
WARM_UP: Final = 0.06
# So many batches' worth of texts are sorted by length, so that little is padded.
SORTED: Final = 32
HEADER: Final = (
    "set", "rows", "accuracy", "macro-F1", "ECE / floor", "at 90 %", "seconds", "us alone", "us in 64", "MB",
)  # fmt: skip


class FineTuned:
    """An encoder with a linear layer on the mean of its tokens.

    Args:
        place: a folder or a name that transformers loads an encoder from.
        names: the labels.
        most: tokens of a text that are read.
    """

    def __init__(self, place: str, names: Sequence[str], most: int) -> None:
        from transformers import AutoModel, AutoTokenizer  # type: ignore[import-not-found]

        self._encoder, self._tokenizer = AutoModel.from_pretrained(place), AutoTokenizer.from_pretrained(place)
        self._head = torch.nn.Linear(self._encoder.config.hidden_size, len(names))
        self._names, self._most = list(names), most
        self._weights = [*self._encoder.parameters(), *self._head.parameters()]

    @property
    def size(self) -> int:
        """Bytes of all weights, as they are saved."""
        return sum(weight.numel() * weight.element_size() for weight in self._weights)

    def fit(self, texts: Sequence[str], labels: Sequence[str], seed: int = 0) -> None:
        """Train on texts and their labels."""
        torch.manual_seed(seed)
        chance, targets = np.random.default_rng(seed), [self._names.index(label) for label in labels]
        optimizer = torch.optim.AdamW(self._weights, lr=RATE, weight_decay=0.01)
        steps = EPOCHS * -(-len(texts) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps + EPOCHS, pct_start=WARM_UP)
        self._encoder.train()
        for _ in range(EPOCHS):
            for batch in _batches([len(text) for text in texts], chance):
                loss = cross_entropy(self._logits([texts[i] for i in batch]), torch.tensor([targets[i] for i in batch]))
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self._weights, 1.0)
                optimizer.step()
                schedule.step()
        self._encoder.eval()

    def _logits(self, texts: Sequence[str]) -> torch.Tensor:
        read = self._tokenizer(list(texts), padding=True, truncation=True, max_length=self._most, return_tensors="pt")
        with torch.autocast("cpu", torch.bfloat16):
            vectors = self._encoder(**read).last_hidden_state
        mask = read["attention_mask"][..., None]
        return self._head((vectors.float() * mask).sum(1) / mask.sum(1))

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> tuple[list[str], Float]:
        """Return labels of texts, and their probabilities [texts]."""
        order = np.argsort([-len(text) for text in texts], kind="stable")
        best, sure = np.zeros(len(texts), int), np.zeros(len(texts))
        for start in range(0, len(texts), 2 * BATCH):
            batch = order[start : start + 2 * BATCH]
            found = torch.softmax(self._logits([texts[i] for i in batch]), 1).max(1)
            best[batch], sure[batch] = found.indices.numpy(), found.values.numpy()
        return [self._names[i] for i in best], sure

    def trained(self) -> Trained:
        """Return it as the benchmarks ask it."""
        return Trained(lambda texts: self.score(texts)[0], lambda text: self.score([text]), self.score, True, self.size)


def _batches(lengths: Sequence[int], chance: np.random.Generator) -> Iterator[list[int]]:
    """Yield batches of rows of about the same length, in an order by chance."""
    order = chance.permutation(len(lengths)).tolist()
    batches = []
    for start in range(0, len(order), SORTED * BATCH):
        part = sorted(order[start : start + SORTED * BATCH], key=lambda i: lengths[i])
        batches += [part[i : i + BATCH] for i in range(0, len(part), BATCH)]
    for i in chance.permutation(len(batches)):
        yield batches[i]


def _measured(encoder: str, folder: Path, most: int) -> Figures:
    train, test = read(folder / "train.csv"), read(folder / "test.csv")
    model = FineTuned(encoder, sorted(set(train.labels)), most)
    begun = time.perf_counter()
    model.fit(train.texts, train.labels)
    return {"rows": len(train.texts), "seconds": time.perf_counter() - begun} | figures(
        model.trained(), test.texts, test.labels
    )


def _row(name: str, found: Figures) -> list[str]:
    return [
        name, f"{found['rows']:,.0f}", f"{found['accuracy']:.2f}", f"{found['macro_f1']:.2f}",
        f"{found['ece']:.3f} / {found['ece_floor']:.3f}", f"{found['accuracy_90']:.2f}", f"{found['seconds']:,.0f}",
        f"{found['alone_us']:,.0f}", f"{found['batch_us']:,.0f}", f"{found['mb']:.1f}",
    ]  # fmt: skip


@click.command()
@click.argument("encoder")
@FOLDERS
@click.option("--tokens", default=128, show_default=True, help="Word pieces of a text that are read.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the table there, too.")
def main(encoder: str, data: Sequence[Path], tokens: int, output: Path | None) -> None:
    """Tune ENCODER on the data sets in DATA, with one thread."""
    torch.set_num_threads(1)
    rows = []
    for name, folder in data_sets(data).items():
        rows.append(_row(name, _measured(encoder, folder, tokens)))
        header = [
            "set",
            "rows",
            "accuracy",
            "macro-F1",
            "ECE / floor",
            "at 90 %",
            "seconds",
            "us alone",
            "us in 64",
            "MB",
        ]
        table = [headline(about()), "", *markdown_table(header, rows)]
        click.echo(table[-1])
        if output is not None:
            output.write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
