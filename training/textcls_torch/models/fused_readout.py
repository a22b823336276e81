"""The loss of several views for a batch, from token vectors on, in one launch: `textcls_kernels.readout`.

It is what `ViewClassifier.forward` and a loss are together, where scores are linear: a query for each seed, `norm`
attention or the softmax's own. Mixing layers run before it, and add to scores or change values as they do elsewhere.

Shapes: G views, B texts, T tokens of the longest one, D width, S seeds.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from textcls_kernels.impl import Impl, resolve_impl
from textcls_kernels.readout import LabelSetTargets, LabelTargets, fits, read_out_loss
from textcls_torch.models.classifier import ViewClassifier


def fuses(classifiers: Sequence[ViewClassifier], device: torch.device, impl: Impl) -> bool:
    """Whether `fused_loss` supports views, all of the same make: its kernels run there, and support their parts.

    Args:
        classifiers: the views.
        device: where they are.
        impl: the implementation, as in `textcls_kernels`.
    """
    config, labels = classifiers[0].config, classifiers[0].labels
    linear = config.attention in ("norm", "softmax")
    return linear and fits(config.dim, config.seeds, labels) and resolve_impl(device, impl) == "triton"


def fused_loss(
    classifiers: Sequence[ViewClassifier],
    x_GBTD: Tensor,
    squared_norm_GBT1: Tensor,
    mask_BT: Tensor,
    targets: LabelTargets | LabelSetTargets,
    impl: Impl,
) -> Tensor:
    """Return the loss of a batch, summed over texts and views.

    Args:
        classifiers: as for `fuses`.
        x_GBTD: token vectors; these, norms and mask as for `ViewClassifier.forward`, but one mask for all views.
        squared_norm_GBT1: squared feature norms.
        mask_BT: True at real tokens, which come first.
        targets: the targets of the texts.
        impl: as for `fuses`.
    """
    value_GBTD, added_GBTS = _mixed(classifiers, x_GBTD, mask_BT)
    return read_out_loss(
        value_GBTD,
        squared_norm_GBT1.squeeze(3),
        mask_BT.sum(1),
        torch.stack([classifier.attention.seeds() for classifier in classifiers]),
        torch.stack([classifier.head.weight for classifier in classifiers]),
        torch.stack([classifier.head.bias for classifier in classifiers]),
        targets,
        norm=classifiers[0].config.attention == "norm",
        added_VBTS=added_GBTS,
        keep_VBX=_kept(classifiers, x_GBTD),
        impl=impl,
    )


def _mixed(classifiers: Sequence[ViewClassifier], x_GBTD: Tensor, mask_BT: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the values, and what the mixing layers add to the scores, if anything."""
    if classifiers[0].mixing is None:
        return x_GBTD, None
    each = zip(classifiers, x_GBTD.unbind(), strict=True)
    values, added = zip(*(classifier.mix(x_BTD, mask_BT) for classifier, x_BTD in each), strict=True)
    return (x_GBTD, torch.stack(added)) if added[0] is not None else (torch.stack(values), None)


def _kept(classifiers: Sequence[ViewClassifier], x_GBTD: Tensor) -> Tensor | None:
    """Return dropout's mask [G, B, S D], already scaled; None if nothing is dropped."""
    config = classifiers[0].config
    if not config.draws_while_training:
        return None
    one_BSD = x_GBTD.new_ones(x_GBTD.shape[1], config.seeds, config.dim)
    return torch.stack([classifier.dropped(one_BSD).flatten(1) for classifier in classifiers])
