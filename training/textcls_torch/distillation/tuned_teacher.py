"""A sentence encoder that is fine-tuned on the labelled rows, and then answers the unlabelled texts.

It begins with the linear head that is fitted on its vectors as they are, so that the first steps do not undo what it
knows (linear probing, then fine-tuning: Kumar et al. 2022, section 3). Answers are cached beside the sentence vectors,
by weights, rows, settings and texts: a second run on the same rows computes none. They are specific to one machine:
sums of floating-point numbers depend on the number of threads.

Shapes: T texts to learn from, A texts that are asked, B texts of a step, C labels.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np
import torch

from textcls._util.atomic_write import atomic_write
from textcls_training.data.arrays import Float32, Int64
from textcls_training.data.dataset import Dataset
from textcls_training.data.split import masks_of
from textcls_training.distillation import linear_head
from textcls_training.fit.callbacks import Callback
from textcls_training.vectors.sentence_encoder import NO_SPACE, SentenceEncoder, as_float64, cache_folder, make_folder

# Found on sst2 and trec6, for an encoder with this number of weights. Larger ones need smaller rates: by the square
# root, 110 million get 3e-5, which is usual, and was not measured here.
RATE: Final = 7e-5
WEIGHTS: Final = 22_700_000
BATCH: Final = 32
WARM_UP: Final = 0.06
DECAY: Final = 0.01
# Tuning takes about this many steps, with at least and at most these passes over the rows.
STEPS: Final = 600
LEAST_PASSES, MOST_PASSES = 2, 10
# The encoder reads only the beginning of longer texts.
MOST_TOKENS: Final = 128
# A tuned model is overconfident; values from 1 to 4 change the student by less than half a point.
TEMPERATURE: Final = 1.5
# Texts that are sorted by length together, so that those of a step have about the same length.
_SORTED: Final = 32 * BATCH


class TunedTeacher:
    """An encoder that is tuned anew on the given labels each time it is asked."""

    def __init__(
        self,
        encoder: SentenceEncoder,
        texts: Sequence[str],
        hashes: Int64,
        classes: int,
        seed: int,
        callback: Callback,
        stopped: Callable[[], bool],
    ) -> None:
        """Take all texts of the pool and their hashes; `callback` receives progress, `stopped` can end it early."""
        self.name = f"{encoder.name}, tuned"
        self._encoder, self._texts, self._hashes, self._classes = encoder, texts, hashes, classes
        self._seed, self._callback, self._stopped = seed, callback, stopped

    def answers(self, text_T: Int64, rows: Dataset, asked_A: Int64) -> Float32 | None:
        """Tune on the texts `text_T`, and return the probabilities [A, C] of the texts `asked_A`; None if stopped.

        Raises:
            SurroundingsError: the cache cannot be written.
        """
        learned = [self._texts[i] for i in text_T]
        asked = [self._texts[i] for i in asked_A]
        folder = cache_folder() / "tuned-answers"
        make_folder(folder)
        path = folder / f"{self._key(learned, rows, asked)}.npy"
        kept = _load(path)
        if kept is not None and kept.shape == (len(asked), self._classes):
            return kept
        vectors = self._encoder.encode(learned, self._callback, self._stopped)
        masks = list(masks_of(self._hashes[text_T], rows.labels))
        head = linear_head.fit(as_float64(vectors), rows, self._classes, masks)
        model = _Classifier(self._encoder.trainable(), head)
        tuned = self._tune(model, learned, rows.target(self._classes), several=rows.several)
        found = self._ask(model, asked, several=rows.several) if tuned else None
        if found is not None:
            with atomic_write(path, NO_SPACE) as file:
                np.save(file, found)
        return found

    def _tune(self, model: "_Classifier", texts: Sequence[str], target_TC: Float32, *, several: bool) -> bool:
        """Take all steps; return False if it was stopped."""
        loss = binary_cross_entropy if several else torch.nn.functional.cross_entropy
        steps_a_pass = math.ceil(len(texts) / BATCH)
        passes = min(MOST_PASSES, max(LEAST_PASSES, round(STEPS / steps_a_pass)))
        optimizer, schedule = _optimizer(model, passes * steps_a_pass)
        random = np.random.default_rng(self._seed)
        steps = (rows for _ in range(passes) for rows in _batches(texts, random))
        model.train()
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            for rows in self._followed(f"tuning {self._encoder.name}", steps, passes * len(texts)):
                with _half(model.device):
                    logits_BC = model([texts[i] for i in rows])
                target_BC = torch.from_numpy(target_TC[rows]).to(model.device)
                optimizer.zero_grad()
                loss(logits_BC.float(), target_BC).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
        return not self._stopped()

    def _ask(self, model: "_Classifier", texts: Sequence[str], *, several: bool) -> Float32 | None:
        """Return the probabilities [A, C] of texts; None if it was stopped."""
        found_AC = np.zeros((len(texts), self._classes), np.float32)
        order = np.argsort([-len(text) for text in texts], kind="stable")
        steps = (order[first : first + 2 * BATCH] for first in range(0, len(order), 2 * BATCH))
        model.eval()
        with torch.inference_mode():
            for rows in self._followed(f"asking {self.name}", steps, len(texts)):
                with _half(model.device):
                    logits_BC = model([texts[i] for i in rows])
                tempered_BC = logits_BC.float() / TEMPERATURE
                found_AC[rows] = (tempered_BC.sigmoid() if several else tempered_BC.softmax(1)).cpu().numpy()
        return None if self._stopped() else found_AC

    def _followed(self, name: str, steps: Iterable[Int64], rows_of_all: int) -> Iterator[Int64]:
        """Yield the rows of each step until it is stopped, and report progress."""
        self._callback.phase(name, rows_of_all)
        began, done = time.monotonic(), 0
        for rows in steps:
            if self._stopped():
                return
            yield rows
            done += len(rows)
            self._callback.step(len(rows))
            self._callback.note(f"{(rows_of_all - done) * (time.monotonic() - began) / done:,.0f} s left")

    def _key(self, texts: Sequence[str], rows: Dataset, asked: Sequence[str]) -> str:
        """Return a hash of everything that determines the answers, except the machine."""
        settings = (RATE, WEIGHTS, BATCH, WARM_UP, DECAY, STEPS, LEAST_PASSES, MOST_PASSES, MOST_TOKENS, TEMPERATURE)
        sets = rows.sets
        told = rows.labels.tolist() if sets is None else [sets.start.tolist(), sets.label.tolist()]
        sure = None if sets is None else sets.probability.tolist()
        parts = (self._encoder.fingerprint, self._seed, settings, self._classes, told, sure, texts, asked)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(hashlib.sha256(repr(part).encode("utf-8", "surrogatepass")).digest())
        return digest.hexdigest()


class _Classifier(torch.nn.Module):
    """An encoder under a linear head."""

    def __init__(self, encoder: Any, head: linear_head.LinearHead) -> None:
        super().__init__()
        self.encoder = encoder
        # An encoder with static vectors reads texts of any length.
        if MOST_TOKENS < (encoder.max_seq_length or 0) < math.inf:
            encoder.max_seq_length = MOST_TOKENS
        self.head = torch.nn.Linear(*head.weight_DC.shape)
        self.device = encoder.device
        with torch.no_grad():
            weight_DC, bias_C = head.calibrated()
            self.head.weight.copy_(torch.from_numpy(weight_DC.T))
            self.head.bias.copy_(torch.from_numpy(bias_C))
        self.head.to(self.device)

    def forward(self, texts: list[str]) -> torch.Tensor:
        """Return logits [B, C]."""
        features = self.encoder.preprocess(texts)
        moved = {name: each.to(self.device) if torch.is_tensor(each) else each for name, each in features.items()}
        logits_BC: torch.Tensor = self.head(self.encoder(moved)["sentence_embedding"])
        return logits_BC


def binary_cross_entropy(logits_BC: torch.Tensor, target_BC: torch.Tensor) -> torch.Tensor:
    """Return the loss of rows that may have several labels, summed over labels, as a softmax counts a row."""
    mean = torch.nn.functional.binary_cross_entropy_with_logits(logits_BC, target_BC)
    return mean * target_BC.shape[1]


def _optimizer(model: "_Classifier", steps: int) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """Return AdamW, whose rate rises over the first steps and then falls to zero."""
    weights = sum(each.numel() for each in model.parameters())
    rate = RATE * min(1.0, WEIGHTS / weights) ** 0.5
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=DECAY)
    warm = max(1, round(WARM_UP * steps))

    def share(step: int) -> float:
        return min((step + 1) / warm, (steps - step) / max(1, steps - warm))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def _batches(texts: Sequence[str], random: np.random.Generator) -> list[Int64]:
    """Return the rows of each step, in random order; the texts of a step have about the same length."""
    order = random.permutation(len(texts))
    found: list[Int64] = []
    for first in range(0, len(order), _SORTED):
        some = order[first : first + _SORTED]
        some = some[np.argsort([len(texts[i]) for i in some], kind="stable")]
        steps = [some[i : i + BATCH] for i in range(0, len(some), BATCH)]
        found += [steps[i] for i in random.permutation(len(steps))]
    return found


def _half(device: torch.device) -> AbstractContextManager[Any]:
    """Compute in bfloat16 if the processor does so quickly."""
    quick = device.type == "cuda" or bool(torch.cpu.get_capabilities().get("avx512_bf16"))
    return torch.autocast(device.type, torch.bfloat16, enabled=quick)


def _load(path: Any) -> Float32 | None:
    try:
        kept: Float32 = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return kept
