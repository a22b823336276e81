"""The version of the ONNX operators in saved models."""

from typing import Final

OPSET: Final = 21
