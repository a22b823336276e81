"""The version of ONNX's operators that saved models are made of."""

from typing import Final

OPSET: Final = 21
