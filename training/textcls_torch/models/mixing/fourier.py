"""The Fourier transform over tokens and channels: mixing without weights.

Shapes: see `textcls_torch.models.ops.mixing`.
"""

from torch import Tensor, nn

from textcls_torch.models.mixing.building_blocks import leave
from textcls_torch.models.ops.mixing import cosines_sines, fourier_mix


class FourierMixing(nn.Module):
    """FNet (Lee-Thorp et al. 2022, arXiv 2105.03824, section 3, eq. 3): the real part of the DFT over both axes.

    No weights except for scores. O(N^2 d + N d^2) in N tokens of width d, and N^2 numbers per text: each text has its
    own length, but one FFT of a batch would have a single one. The block's feed-forward layer is left out.

    Args:
        dim: width D of the token vectors.
        out: width of the result.
    """

    def __init__(self, dim: int, out: int) -> None:
        super().__init__()
        cosine_DD, sine_DD = cosines_sines(dim)
        self.register_buffer("cosine_DD", cosine_DD.float())
        self.register_buffer("sine_DD", sine_DD.float())
        self.cosine_DD: Tensor
        self.sine_DD: Tensor
        self.leave = leave(dim, out)

    def forward(self, x_BTD: Tensor, mask_BT: Tensor) -> Tensor:
        """Return [B, T, out]."""
        y_BTX: Tensor = self.leave(fourier_mix(x_BTD, mask_BT, self.cosine_DD, self.sine_DD))
        return y_BTX
