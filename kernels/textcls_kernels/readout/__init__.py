"""The readout of the default model with its loss."""

from textcls_kernels.readout.loss import LabelSetTargets, LabelTargets, fits, read_out_loss

__all__ = ["LabelSetTargets", "LabelTargets", "fits", "read_out_loss"]
