"""A scoring head as an ONNX graph: its module is run once, and each PyTorch function that it calls is recorded.

PyTorch's own exporter takes any module, and seconds; a head is made of some fifty functions, and those are here. The
module runs on a batch whose two sizes are primes that no weight has: wherever one of them turns up, the graph reads the
size from its inputs. What cannot be recorded is refused by name, and so is a constant that has one of these sizes.
Nothing is trusted: before a file is written, the answers of ONNX Runtime are compared with those of the module
(`textcls_training.export.parity`).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from textcls.errors import ArtifactError
from textcls_torch.models.ops.mixing import MATRIX_TOKENS
from textcls_training.export.builder import GraphBuilder
from textcls_training.export.heads.outputs import INPUTS, OUTPUTS

_TYPES: Final = {torch.float32: 1, torch.int64: 7, torch.bool: 9}  # onnx.TensorProto.DataType
# Functions of one tensor, or of several of the same type, each of which is one ONNX operator.
_SAME: Final = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "matmul": "MatMul", "remainder": "Mod",
    "lt": "Less", "gt": "Greater", "and": "And", "invert": "Not", "clamp_min": "Max", "sqrt": "Sqrt", "log": "Log",
    "cos": "Cos", "sin": "Sin", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "Gelu", "elu": "Elu",
}  # fmt: skip
_COMPARISONS: Final = {"lt", "gt"}


def trace(head: nn.Module, g: GraphBuilder, views: int, columns: int) -> None:
    """Record what a module does in `g`, from `INPUTS` to `OUTPUTS`.

    Args:
        head: takes padding [B, T] and token sums [B, T, V, X], and returns the outputs, in evaluation mode.
        g: the graph that it is recorded in.
        views: V.
        columns: X.

    Raises:
        ArtifactError: it calls a function that has no counterpart here.
    """
    taken = {size for weight in head.state_dict().values() for size in weight.shape}
    # Few texts, as a number for each label of each token is computed; but longer ones than those for which a Toeplitz
    # gate uses a matrix of fixed length.
    sizes = _foreign_prime(taken, 10), _foreign_prime(taken, MATRIX_TOKENS)
    given = torch.zeros(*sizes, dtype=torch.bool), torch.zeros(*sizes, views, columns)
    tracer = _Tracer(g, sizes, given)
    with torch.no_grad(), tracer:
        results = head(*given)
    for name, result in zip(OUTPUTS, results, strict=True):
        g.node("Identity", tracer.name_of(result), name=name)


def _foreign_prime(taken: Iterable[int], least: int) -> int:
    """Return the first prime above `least` that divides none of `taken`."""
    return next(n for n in count(least + 1) if all(n % i for i in range(2, n)) and all(size % n for size in taken))


class _Tracer(TorchFunctionMode):
    """A mode that calls each function, and adds the nodes of those that depend on the inputs."""

    def __init__(self, g: GraphBuilder, sizes: tuple[int, int], given: Sequence[Tensor]) -> None:
        super().__init__()
        self.g = g
        self.sizes = sizes
        self.size_names: dict[int, str] = {}
        # Tensors are kept, since an id may be reused once its tensor is gone.
        self.traced = {id(tensor): (tensor, name) for name, tensor in zip(INPUTS, given, strict=True)}
        self.constants: dict[int, tuple[Tensor, str]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call `func`, and record it if it depends on the inputs."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = _name(func)
        traced = any(id(one) in self.traced for one in pytree.tree_leaves((args, kwargs)))
        if not traced and not (name == "arange" and args[0] in self.sizes):
            return result
        if not any(isinstance(one, Tensor) for one in pytree.tree_leaves(result)):
            return result  # a size, a type
        # A new object, in case PyTorch returns an argument.
        result = result.view_as(result) if isinstance(result, Tensor) else tuple(result)
        self._write(name, result, args, kwargs)
        return result

    def _write(self, name: str, result: Any, args: Any, kwargs: Any) -> None:
        if name in _SAME:
            names: Any = self._same(name, result, args)
        elif writer := getattr(self, f"_{name}", None):
            names = writer(result, *args, **kwargs)
        else:
            raise ArtifactError(f"A model that calls torch's '{name}' cannot be saved: the export does not know it.")
        for tensor, found in zip(result, names, strict=True) if isinstance(result, tuple) else [(result, names)]:
            if found is not None:
                self.traced[id(tensor)] = tensor, found

    def name_of(self, value: Any, dtype: torch.dtype | None = None) -> str:
        """Return the name of a tensor or a number in the graph, with this type."""
        if id(value) in self.traced:
            tensor, name = self.traced[id(value)]
            if dtype in (None, tensor.dtype):
                return name
            return self.g.node("Cast", name, to=_TYPES[dtype])
        if not isinstance(value, Tensor):
            return self.g.constant(value, _numpy(dtype))
        if set(self.sizes) & set(value.shape):
            raise ArtifactError("A model whose constants depend on the length of a text cannot be saved.")
        if id(value) not in self.constants:
            self.constants[id(value)] = value, self.g.constant(value.numpy(), _numpy(dtype or value.dtype))
        return self.constants[id(value)][1]

    def _same(self, name: str, result: Tensor, args: Any) -> str:
        values = args[:2] if isinstance(args[-1], int | float | Tensor) else args[:1]
        dtype = torch.result_type(*values) if name in _COMPARISONS else result.dtype
        more: dict[str, Any] = {"alpha": 1.0} if name == "elu" else {}
        return self.g.node(_SAME[name], *(self.name_of(value, dtype) for value in values), **more)

    def _softmax(self, result: Tensor, x: Tensor, dim: int, **_: Any) -> str:
        return self.g.node("Softmax", self.name_of(x), axis=dim)

    def _linear(self, result: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> str:
        product = self.g.node("MatMul", self.name_of(x), self.name_of(weight.detach().T.contiguous()))
        return product if bias is None else self.g.node("Add", product, self.name_of(bias))

    def _layer_norm(
        self, result: Tensor, x: Tensor, shape: Any, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5
    ) -> str:
        found = [self.name_of(one) for one in (x, weight, bias) if one is not None]
        return self.g.node("LayerNormalization", *found, axis=-len(shape), epsilon=eps)

    def _normalize(self, result: Tensor, x: Tensor, dim: int, eps: float, **_: Any) -> str:
        square = self.g.node("ReduceSumSquare", self.name_of(x), self.g.integers(dim))
        length = self.g.node("Max", self.g.node("Sqrt", square), self.name_of(eps, x.dtype))
        return self.g.node("Div", self.name_of(x), length)

    def _lstm(self, result: Any, x: Tensor, start: Any, weights: Sequence[Tensor], *_: Any) -> list[str | None]:
        """One layer that reads forward, batch first, from a zero state; ONNX orders its gates differently."""

        def gates(weight_XD: Tensor) -> Tensor:
            i, f, g, o = weight_XD.detach().chunk(4)
            return torch.cat([i, o, f, g])

        into_XD, again_XD, into_X, again_X = map(gates, weights)
        given = (into_XD[None], again_XD[None], torch.cat([into_X, again_X])[None])
        x_TBD = self.g.node("Transpose", self.name_of(x), perm=[1, 0, 2])
        names = (self.g.constant(one.numpy(), np.float32) for one in given)
        h_T1BD = self.g.node("LSTM", x_TBD, *names, hidden_size=again_XD.shape[1])
        h_TBD = self.g.node("Squeeze", h_T1BD, self.g.integers(1))
        return [self.g.node("Transpose", h_TBD, perm=[1, 0, 2]), None, None]

    def _masked_fill(self, result: Tensor, x: Tensor, mask: Tensor, value: float) -> str:
        return self.g.node("Where", self.name_of(mask), self.name_of(value, x.dtype), self.name_of(x))

    def _where(self, result: Tensor, first: Tensor, second: Any, other: Any) -> str:
        """`torch.where(condition, x, other)` and `x.where(condition, other)`."""
        condition, x = (first, second) if first.dtype == torch.bool else (second, first)
        return self.g.node("Where", self.name_of(condition), *(self.name_of(one, result.dtype) for one in (x, other)))

    def _sum(self, result: Tensor, x: Tensor, dim: Any, keepdim: bool = False) -> str:
        return self._reduced("ReduceSum", result, x, dim, keepdim)

    def _mean(self, result: Tensor, x: Tensor, dim: Any, keepdim: bool = False) -> str:
        return self._reduced("ReduceMean", result, x, dim, keepdim)

    def _reduced(self, operator: str, result: Tensor, x: Tensor, dim: Any, keepdim: bool) -> str:
        axes = self.g.integers(*(dim if isinstance(dim, tuple) else (dim,)))
        return self.g.node(operator, self.name_of(x, result.dtype), axes, keepdims=int(keepdim))

    def _to(self, result: Tensor, x: Tensor, *_: Any) -> str:
        return self.name_of(x, result.dtype)

    _detach = _to

    def _arange(self, result: Tensor, end: int, **_: Any) -> str:
        last = self.g.node("Squeeze", self._size(end), self.g.integers(0))
        return self.g.node("Range", self.g.constant(0, np.int64), last, self.g.constant(1, np.int64))

    # Shapes.

    def _size(self, size: int) -> str:
        """Return the name of the number of texts, or of tokens: one integer in a list."""
        if size not in self.size_names:
            axis = self.sizes.index(size)
            self.size_names[size] = self.g.node("Shape", INPUTS[0], start=axis, end=axis + 1)
        return self.size_names[size]

    def _list(self, sizes: Sequence[int]) -> str:
        """Return the name of a list of integers, some of which are the number of texts or of tokens."""
        if not set(self.sizes) & set(sizes):
            return self.g.integers(*sizes)
        parts = [self._size(size) if size in self.sizes else self.g.integers(size) for size in sizes]
        return self.g.node("Concat", *parts, axis=0)

    def _reshaped(self, result: Tensor, x: Tensor, *_: Any, **__: Any) -> str:
        # An unchanged size is a 0; one unknown size is a -1, products first; others are read from the inputs.
        sizes = [0 if result.shape[: i + 1] == x.shape[: i + 1] else size for i, size in enumerate(result.shape)]
        unknown = [i for i, size in enumerate(sizes) if size and not all(size % one for one in self.sizes)]
        if unknown:
            sizes[max(unknown, key=lambda i: sizes[i] not in self.sizes)] = -1
        return self.g.node("Reshape", self.name_of(x), self._list(sizes))

    _view = _view_as = _flatten = _unflatten = _reshaped

    def _unsqueeze(self, result: Tensor, x: Tensor, dim: int) -> str:
        return self.g.node("Unsqueeze", self.name_of(x), self.g.integers(dim))

    def _squeeze(self, result: Tensor, x: Tensor, dim: int) -> str:
        return self.g.node("Squeeze", self.name_of(x), self.g.integers(dim))

    def _permute(self, result: Tensor, x: Tensor, *dims: int) -> str:
        return self.g.node("Transpose", self.name_of(x), perm=dims)

    def _transpose(self, result: Tensor, x: Tensor, one: int, other: int) -> str:
        dims = list(range(x.ndim))
        dims[one], dims[other] = dims[other], dims[one]
        return self._permute(result, x, *dims)

    def _mT(self, result: Tensor, x: Tensor) -> str:  # noqa: N802
        return self._transpose(result, x, -2, -1)

    def _stack(self, result: Tensor, parts: Sequence[Tensor], dim: int) -> str:
        return self.g.node("Concat", *(self._unsqueeze(part, part, dim) for part in parts), axis=dim)

    def _split(self, result: Sequence[Tensor], x: Tensor, sizes: Any, dim: int = 0) -> list[str]:
        return self.g.split(self.name_of(x), [part.shape[dim] for part in result], dim)

    _chunk = _split

    def _pad(self, result: Tensor, x: Tensor, pads: Sequence[int], **_: Any) -> str:
        """Pad with zeros, given from the last dimension backwards."""
        before, after = ([0] * (x.ndim - len(pads) // 2) + list(pads[i::2])[::-1] for i in (0, 1))
        return self.g.node("Pad", self.name_of(x), self._list([*before, *after]))

    def _getitem(self, result: Tensor, x: Tensor, places: Any) -> str:
        """Whole dimensions, new ones, one index of a dimension, and the beginning of a dimension."""
        found, axis = self.name_of(x), 0
        new: list[int] = []
        for place in places if isinstance(places, tuple) else (places,):
            if place is None:
                new.append(axis + len(new))
                continue
            if isinstance(place, int):
                found = self.g.node("Gather", found, self.g.constant(place, np.int64), axis=axis)
                continue
            if place.start is not None or place.step is not None:
                raise ArtifactError("A model that cuts tensors anywhere but at their ends cannot be saved.")
            if place.stop is not None:
                found = self.g.node("Slice", found, self.g.integers(0), self._list([place.stop]), self.g.integers(axis))
            axis += 1
        return self.g.node("Unsqueeze", found, self.g.integers(*new)) if new else found

    # Windows over tokens.

    def _conv1d(self, result: Tensor, x: Tensor, weight: Tensor, bias: None = None, *, padding: int) -> str:
        return self.g.node("Conv", self.name_of(x), self.name_of(weight), pads=[padding, padding])

    def _avg_pool1d(self, result: Tensor, x: Tensor, size: int, stride: int, padding: int) -> str:
        window: dict[str, Any] = {"kernel_shape": [size], "strides": [stride], "pads": [padding, padding]}
        return self.g.node("AveragePool", self.name_of(x), **window, count_include_pad=1)


def _name(func: Callable[..., Any]) -> str:
    """Return the name of a function, a method, an operator or a property of a tensor, without underscores."""
    name = str(func.__name__)
    if name == "__get__":
        name = str(getattr(func, "__self__").__name__)  # noqa: B009  # of a property, as its descriptor knows it
    return name.strip("_")


def _numpy(dtype: torch.dtype | None) -> Any:
    return {torch.float32: np.float32, torch.int64: np.int64, torch.bool: np.bool_}[dtype or torch.float32]
