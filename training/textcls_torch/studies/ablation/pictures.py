"""What metric tensor attention has learned, in numbers to be drawn: its metrics, scores of texts, distances of tokens.

Shapes: T tokens of a text, G groups and X columns of token sums, D width of a token's vector, H heads, K width of a
head.
"""

from collections.abc import Sequence
from typing import Any, Final

import torch

from textcls.model import tokenizer
from textcls_kernels import unpack_metric
from textcls_torch.models.mixing.metric import MetricAttention
from textcls_torch.models.modules import module_of
from textcls_training.data.corpus import Corpus
from textcls_training.pipeline.training import TrainingRun

TEXTS: Final = 2
TOKENS: Final = range(5, 15)


@torch.no_grad()
def pictures_of(run: TrainingRun, texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the metrics [H][K][K] and, of the first few short texts, tokens, scores and distances [H][T][T].

    Scores are attention probabilities; a distance is (p_c - p_d) M (p_c - p_d), which may be negative: a learned
    metric is symmetric, but nothing makes it positive. None without metric tensor attention.
    """
    layer = module_of(run.model.views[0].classifier).mixing
    if layer is None or not isinstance(layer.mixer, MetricAttention):
        return None
    mixer = layer.mixer
    metric_HKK = unpack_metric(mixer.metric_HL)
    shown = [text for text in texts if len(tokenizer.tokenize(text)) in TOKENS][:TEXTS]
    found = []
    for text in shown:
        _, token_1TGX = run.tables.read(Corpus.of([text], len(text)))
        x_1TD = torch.from_numpy(token_1TGX[:, :, 0, :-1])
        p_HTK = mixer.project(layer.norm(x_1TD))[0].unflatten(-1, mixer.widths).transpose(0, 1)
        product_HTT = p_HTK @ metric_HKK @ p_HTK.transpose(1, 2)
        own_HT = product_HTT.diagonal(dim1=1, dim2=2)
        distance_HTT = own_HT.unsqueeze(1) + own_HT.unsqueeze(2) - 2 * product_HTT
        score_HTT = torch.softmax(product_HTT / mixer.widths[1] ** 0.5, -1)
        found.append(
            {"tokens": tokenizer.tokenize(text), "scores": _rounded(score_HTT), "distances": _rounded(distance_HTT)}
        )
    return {"metrics": _rounded(metric_HKK), "texts": found}


def _rounded(x: torch.Tensor) -> Any:
    return [[[round(value, 4) for value in row] for row in matrix] for matrix in x.tolist()]
