"""The readout with its loss: the twin against finite differences and training's modules, the kernels against it."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from textcls_kernels.impl import Impl
from textcls_kernels.readout import LabelSetTargets, LabelTargets, fits, read_out_loss
from textcls_kernels.testing import count_launches

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FOCUS = 1.25
LEARNED = ("x_VBTD", "query_VSD", "head_VCX", "bias_VC", "added_VBTS")
needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="the kernels need triton: pip install 'textcls[kernels]'"
)
every_impl = pytest.mark.parametrize("impl", ["reference", pytest.param("triton", marks=needs_triton)])
Targets = LabelTargets | LabelSetTargets
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Sizes V, B, T, D, S, C, and what a batch is made of."""

    views: int
    texts: int
    tokens: int
    width: int
    seeds: int
    labels: int
    loss: str = "hard"  # or soft; sets, of hard labels; soft sets
    norm: bool = True
    options: str = ""  # added, keep, rows

    def arguments(self, score: float = 1.0) -> Arguments:
        """What `read_out_loss` is given, in float64 that float32 holds too."""
        generator = torch.Generator().manual_seed(self.tokens + self.width)

        def normal(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator)

        def uniform(*shape: int) -> torch.Tensor:
            return torch.rand(shape, generator=generator)

        v, b, t, d, s, c = self.views, self.texts, self.tokens, self.width, self.seeds, self.labels
        arguments = {
            "x_VBTD": normal(v, b, t, d),
            "squared_norm_VBT": uniform(v, b, t) + 0.1,
            "length_B": torch.tensor([t, 0, 1, (t + 1) // 2][:b], dtype=torch.int64),
            "query_VSD": normal(v, s, d) * score / d**0.5,
            "head_VCX": normal(v, c, s * d) / d**0.5,
            "bias_VC": normal(v, c),
            "targets": self._targets(uniform),
            "norm": self.norm,
            "added_VBTS": normal(v, b, t, s) if "added" in self.options else None,
            "keep_VBX": (uniform(v, b, s * d) > 0.2) / 0.8 if "keep" in self.options else None,
        }
        return converted(arguments, torch.float64)

    def _targets(self, uniform: Callable[..., torch.Tensor]) -> Targets:
        one_BC = uniform(self.texts, self.labels)
        weights = uniform(self.labels) + 0.5, uniform(self.labels) + 0.5
        row_weight_B = uniform(self.texts) + 0.5 if "rows" in self.options else None
        if "sets" in self.loss:
            target_BC = one_BC if "soft" in self.loss else (one_BC > 0.7).float()
            return LabelSetTargets(target_BC, *weights, FOCUS, row_weight_B)
        return LabelTargets(one_BC.softmax(1) if self.loss == "soft" else one_BC.argmax(1), weights[0], row_weight_B)


ALL = "added, keep, rows"
CASES = {
    "one number of everything": Case(1, 3, 1, 1, 1, 1),
    "two tokens": Case(2, 3, 2, 5, 1, 2, options=ALL),
    "a few tokens, soft": Case(1, 4, 17, 16, 2, 5, "soft", options="keep"),
    "the default": Case(2, 4, 64, 32, 1, 5),
    "many labels of a text": Case(1, 3, 65, 32, 1, 150, "sets", options="rows"),
    "wide, long, many seeds": Case(1, 2, 130, 100, 4, 77, "soft", norm=False, options=ALL),
    "widest": Case(1, 4, 17, 128, 1, 5, "soft sets", options="added"),
    "three seeds": Case(1, 3, 65, 64, 3, 2, "sets", norm=False, options=ALL),
    "long, many labels": Case(1, 4, 130, 16, 1, 150, norm=False, options="rows"),
    "one label": Case(2, 3, 5, 16, 2, 1, "sets", options=ALL),
}
SMALL = Case(2, 4, 9, 5, 2, 3, options=ALL)
every_case = pytest.mark.parametrize("case", CASES)
every_loss = pytest.mark.parametrize("loss", ["hard", "soft", "sets", "soft sets"])
either_norm = pytest.mark.parametrize("norm", [True, False], ids=["norm", "softmax"])


def converted(arguments: Arguments, dtype: torch.dtype) -> Arguments:
    """The same on the device under test, floats in another type."""

    def tensor(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(DEVICE, dtype if value.is_floating_point() else value.dtype)
        return type(value)(*map(tensor, value)) if isinstance(value, LabelTargets | LabelSetTargets) else value

    return {name: tensor(value) for name, value in arguments.items()}


def run(arguments: Arguments, impl: Impl, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """The loss and each gradient, of 1.7 times the loss."""
    arguments = converted(arguments, dtype)
    leaves = {name: arguments[name].clone().requires_grad_() for name in LEARNED if arguments[name] is not None}
    loss = read_out_loss(**arguments | leaves, impl=impl)
    gradients = torch.autograd.grad(1.7 * loss, list(leaves.values()))
    return {"loss": loss.detach(), **dict(zip(leaves, gradients, strict=True))}


def assert_near(found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor], floor: float = 1e-9) -> None:
    assert list(found) == list(exact)
    for name, wanted in exact.items():
        off = (found[name].double() - wanted).abs()
        assert off.norm() <= 5e-6 * wanted.norm() + floor, (name, off.norm(), wanted.norm())
        if off.numel():
            assert off.max() <= 2e-5 * wanted.abs().max() + floor, (name, off.max())


@every_loss
@either_norm
def test_gradients_of_the_twin_are_finite_differences(norm: bool, loss: str) -> None:
    arguments = replace(SMALL, norm=norm, loss=loss).arguments()
    leaves = [arguments[name].requires_grad_() for name in LEARNED]

    def function(*given: torch.Tensor) -> torch.Tensor:
        return read_out_loss(**arguments | dict(zip(LEARNED, given, strict=True)), impl="reference")

    assert torch.autograd.gradcheck(function, leaves, fast_mode=True)


@every_impl
@pytest.mark.parametrize("attention", ["norm", "softmax"])
@every_loss
def test_the_loss_is_that_of_trainings_own_modules(loss: str, attention: Any, impl: Impl) -> None:
    pytest.importorskip("numba", reason="training needs its packages: pip install 'textcls[train]'")
    from textcls_torch.fit.loss import label_loss, label_set_loss
    from textcls_torch.models.classifier import ViewClassifier
    from textcls_training.config.settings import ModelConfig

    case = replace(SMALL, loss=loss, norm=attention == "norm", options="rows")
    dtype = torch.float64 if impl == "reference" else torch.float32
    given = converted(case.arguments(), dtype)
    mask_BT = torch.arange(case.tokens, device=DEVICE) < given["length_B"][:, None]
    x_VBTD = given["x_VBTD"].requires_grad_()
    given["x_VBTD"] = x_VBTD * mask_BT[..., None]
    config = ModelConfig(dim=case.width, seeds=case.seeds, attention=attention)
    torch.manual_seed(0)
    views = [ViewClassifier(config, case.labels).to(DEVICE, dtype) for _ in range(case.views)]
    given["query_VSD"] = torch.stack([view.attention.seeds() for view in views])
    given["head_VCX"] = torch.stack([view.head.weight for view in views])
    given["bias_VC"] = torch.stack([view.head.bias for view in views])
    learned = [x_VBTD, *(weight for view in views for weight in view.parameters())]

    logits_VBC = torch.stack(
        [
            view(x_BTD, squared_norm_BT[..., None], mask_BT)
            for view, x_BTD, squared_norm_BT in zip(views, given["x_VBTD"], given["squared_norm_VBT"], strict=True)
        ]
    )
    targets = given["targets"]
    if isinstance(targets, LabelSetTargets):
        wanted = label_set_loss(logits_VBC, *targets[:3], targets.row_weight_B)
    else:
        wanted = label_loss(logits_VBC, *targets)
    loss_found = read_out_loss(**given, impl=impl)
    bound = 1e-8 if impl == "reference" else 2e-5
    torch.testing.assert_close(loss_found, wanted, rtol=bound, atol=bound)
    for found, gradient in zip(
        torch.autograd.grad(loss_found, learned, retain_graph=True), torch.autograd.grad(wanted, learned), strict=True
    ):
        torch.testing.assert_close(found, gradient, rtol=bound, atol=bound)


@needs_triton
@every_case
def test_kernels_agree_with_the_twin_in_float64(case: str) -> None:
    arguments = CASES[case].arguments()
    assert_near(run(arguments, "triton"), run(arguments, "reference", torch.float64))


@needs_triton
@either_norm
def test_scores_of_thousands_cost_no_more_than_they_do_in_pytorch(norm: bool) -> None:
    arguments = Case(1, 4, 40, 32, 1, 5, norm=norm).arguments(score=3e3)
    exact = run(arguments, "reference", torch.float64)
    ours, theirs = run(arguments, "triton"), run(arguments, "reference")
    for name, wanted in exact.items():
        off, allowed = ((found[name].double() - wanted).norm() for found in (ours, theirs))
        assert off <= 3 * allowed + 1e-5 * wanted.norm(), (name, off, allowed, wanted.norm())


@needs_triton
@every_loss
def test_answers_that_are_nearly_sure_cost_what_they_do_in_float64(loss: str) -> None:
    arguments = replace(SMALL, labels=5, loss=loss, options="").arguments()
    arguments["bias_VC"] *= 20
    assert arguments["bias_VC"].abs().max() > 30
    assert_near(run(arguments, "triton"), run(arguments, "reference", torch.float64))


@every_impl
@either_norm
def test_one_token_alone_teaches_scores_nothing_to_the_bit(norm: bool, impl: Impl) -> None:
    arguments = replace(SMALL, norm=norm).arguments(score=1e3)
    arguments["length_B"].fill_(1)
    found = run(arguments, impl)
    assert found["x_VBTD"].any()
    assert not found["query_VSD"].any()
    assert not found["added_VBTS"].any()


@every_impl
def test_texts_whose_norms_are_all_zero_answer_by_the_bias_alone(impl: Impl) -> None:
    arguments = SMALL.arguments()
    arguments["squared_norm_VBT"].zero_()
    found = run(arguments, impl)
    none = run(arguments | {"length_B": torch.zeros(4, dtype=torch.int64)}, impl)
    for name in ("loss", "bias_VC"):
        assert torch.equal(found[name], none[name])
    for name in ("x_VBTD", "query_VSD", "added_VBTS", "head_VCX"):
        assert not found[name].any()


@needs_triton
@pytest.mark.parametrize("score", [-30.0, -40.0, -60.0, -120.0])
def test_a_token_far_below_unknown_ones_has_the_weight_that_it_has_in_pytorch(score: float) -> None:
    """Squares of probabilities are below LEAST_SQUARE at -40, and no numbers of float32 at -60: all weights are 0."""
    arguments = replace(SMALL, options="added").arguments()
    for name in ("x_VBTD", "squared_norm_VBT"):
        arguments[name][:, :, 1:] = 0  # tokens without rows
    arguments["added_VBTS"].zero_()
    arguments["added_VBTS"][:, :, 0] = score
    found = run(arguments, "triton")
    wanted = run(arguments, "reference", torch.float64 if score > -60 else torch.float32)
    assert_near(found, {name: tensor.double() for name, tensor in wanted.items()})
    assert bool(found["x_VBTD"][:, 0].any()) == (score > -60)


@needs_triton
def test_a_token_that_is_repeated_weighs_by_the_root_of_how_often() -> None:
    case = Case(1, 2, 64, 16, 1, 2)
    arguments = case.arguments()
    arguments["x_VBTD"] = arguments["x_VBTD"][:, :1, :1].expand(1, 2, 64, 16).clone()
    arguments["squared_norm_VBT"].fill_(0.5)
    arguments["length_B"] = torch.tensor([64, 16])
    assert_near(run(arguments, "triton"), run(arguments, "reference", torch.float64), floor=1e-7)
    alone = arguments | {name: arguments[name][:, :, :1] for name in ("x_VBTD", "squared_norm_VBT")}
    alone["head_VCX"], alone["length_B"] = 8 * arguments["head_VCX"], torch.tensor([1, 0])
    alone["targets"] = arguments["targets"]._replace(row_weight_B=torch.tensor([1.0, 0.0], dtype=torch.float64))
    arguments["targets"] = alone["targets"]
    torch.testing.assert_close(run(arguments, "triton")["loss"], run(alone, "triton")["loss"])


@every_impl
def test_padding_is_never_read_and_gets_no_gradient(impl: Impl) -> None:
    arguments = SMALL.arguments()
    expected = run(arguments, impl)
    padding_BT = torch.arange(9) >= arguments["length_B"].cpu()[:, None]
    for name in ("x_VBTD", "squared_norm_VBT", "added_VBTS"):
        arguments[name][:, padding_BT] = float("nan")
    found = run(arguments, impl)
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name]), name
    for name in ("x_VBTD", "added_VBTS"):
        assert not found[name][:, padding_BT].any()


@every_impl
def test_lengths_out_of_range_are_clamped_and_may_be_of_either_type(impl: Impl) -> None:
    arguments = SMALL.arguments()
    tame = run(arguments | {"length_B": torch.tensor([9, 0, 1, 9])}, impl)
    wild = run(arguments | {"length_B": torch.tensor([90, -3, 1, 9], dtype=torch.int32)}, impl)
    assert all(torch.equal(tame[name], wild[name]) for name in tame)


@every_impl
def test_hard_labels_are_probabilities_of_one_and_a_number_that_is_no_label_has_no_loss(impl: Impl) -> None:
    arguments = replace(SMALL, options="").arguments()
    targets = arguments["targets"]._replace(target=torch.tensor([2, -1, 0, 3], device=DEVICE))
    soft_BC = torch.tensor([[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=torch.float64, device=DEVICE)
    hard = run(arguments | {"targets": targets}, impl)
    soft = run(
        arguments | {"targets": targets._replace(target=soft_BC)},
        impl,
        torch.float64 if impl == "reference" else torch.float32,
    )
    assert_near(hard, {name: tensor.double() for name, tensor in soft.items()})
    assert not hard["x_VBTD"][:, [1, 3]].any()


@needs_triton
def test_two_runs_of_the_kernels_give_the_same_bits_and_other_strides_too() -> None:
    arguments = CASES["three seeds"].arguments()
    first, again = run(arguments, "triton"), run(arguments, "triton")
    for name in ("x_VBTD", "query_VSD", "head_VCX", "added_VBTS"):
        arguments[name] = arguments[name].mT.contiguous().mT
    turned = run(arguments, "triton")
    for name, tensor in first.items():
        assert torch.equal(tensor, again[name]), name
        assert torch.equal(tensor, turned[name]), name


@every_impl
@pytest.mark.parametrize("sizes", [(1, 0, 5), (2, 3, 0)], ids=["no texts", "no tokens"])
def test_where_there_is_nothing_to_read_gradients_have_their_shapes(sizes: tuple[int, int, int], impl: Impl) -> None:
    case = Case(*sizes, 5, 2, 3, options=ALL)
    arguments = case.arguments()
    found = run(arguments, impl)
    assert all(found[name].shape == arguments[name].shape for name in LEARNED)
    assert not found["query_VSD"].any()
    assert bool(found["loss"]) == bool(found["bias_VC"].any()) == (case.texts > 0)


WAITS = ("_local_scalar_dense", "nonzero", "unique", "masked_select", "is_nonzero", "equal", "_to_copy", "index")
# Room and views; in its interpreter Triton copies what a launch is given.
SILENT = ("new_empty", "empty", "empty_like", "set_", "copy_", "mT", "detach")


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What PyTorch is asked for, by the kernels' operators too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace == "textcls_kernels":
            with self:
                return torch._library.custom_ops.OPDEFS[function._schema.name]._init_fn(*args, **kwargs or {})
        self.asked[function._schema.name.removeprefix("aten::")] += 1
        return function(*args, **kwargs or {})


@needs_triton
@every_loss
def test_a_step_is_a_launch_each_way_and_asks_the_device_for_no_value(loss: str) -> None:
    arguments = converted(replace(SMALL, loss=loss).arguments(), torch.float32)
    leaves = {name: arguments[name].requires_grad_() for name in LEARNED}
    with count_launches() as launches, Operators() as operators:
        torch.autograd.grad(read_out_loss(**arguments | leaves, impl="triton"), list(leaves.values()))
    assert launches == Counter(readout_forward_kernel=1, readout_backward_kernel=1)
    assert not [name for name in operators.asked if any(wait in name for wait in WAITS)]
    # The sums of the loss, of dquery and of dbias; what the gradient starts from.
    assert {name: n for name, n in operators.asked.items() if name not in SILENT} == {
        "sum": 3,
        "bmm": 1,
        "ones_like": 1,
    }


@needs_triton
def test_operators_compile_export_and_check() -> None:
    arguments = converted(SMALL.arguments(), torch.float32)
    options: Arguments = {name: arguments.pop(name) for name in ("keep_VBX", "targets", "norm")}

    class Layer(torch.nn.Module):
        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            batch: Arguments = dict(zip(arguments, given, strict=True))
            return read_out_loss(**batch, **options, impl="triton")

    inputs = tuple(arguments.values())
    expected = Layer()(*inputs)
    assert torch.equal(torch.export.export(Layer(), inputs).module()(*inputs), expected)
    compiled = torch.compile(Layer(), backend="aot_eager", fullgraph=True)
    leaves = {name: arguments[name].clone().requires_grad_() for name in LEARNED}
    inputs = tuple((arguments | leaves).values())
    both = [torch.autograd.grad(layer(*inputs), list(leaves.values())) for layer in (compiled, Layer())]
    assert all(torch.equal(*gradients) for gradients in zip(*both, strict=True))
    arguments["length_B"].fill_(9)  # scores at padding are left as they lie in memory, and could not be compared
    target, class_weight_C, row_weight_B = options["targets"]
    flat = *inputs, options["keep_VBX"], target, class_weight_C, None, row_weight_B, 0.0, True
    torch.library.opcheck(torch.ops.textcls_kernels.read_out_loss.default, flat)


@needs_triton
def test_a_second_derivative_is_refused_in_words_that_name_the_twin() -> None:
    arguments = converted(SMALL.arguments(), torch.float32)
    x_VBTD = arguments["x_VBTD"].requires_grad_()
    (gradient,) = torch.autograd.grad(read_out_loss(**arguments, impl="triton"), x_VBTD, create_graph=True)
    with pytest.raises(RuntimeError, match=r"^the kernels of the readout have first .* impl='reference'"):
        torch.autograd.grad(gradient.sum(), x_VBTD)


def test_arguments_that_break_a_rule_are_refused_in_words_that_say_which() -> None:
    arguments = SMALL.arguments()
    targets = arguments["targets"]

    def refused(kind: type[Exception], words: str, **other: Any) -> None:
        with pytest.raises(kind, match=words):
            read_out_loss(**arguments | other)

    refused(ValueError, r"^x_VBTD has 4 dimensions; got shape \[4, 9, 5\]", x_VBTD=arguments["x_VBTD"][0])
    refused(TypeError, r"^x_VBTD is floating; got torch.int64", x_VBTD=arguments["x_VBTD"].long())
    refused(
        ValueError,
        r"^head_VCX belongs to the batch or to the model; expected \[2, 3, 10\] on .*, got \[2, 3, 9\] on",
        head_VCX=arguments["head_VCX"][..., 1:],
    )
    refused(
        TypeError,
        r"^keep_VBX is of another type; expected torch.float64, got torch.float32",
        keep_VBX=arguments["keep_VBX"].float(),
    )
    refused(ValueError, r"^length_B belongs .* expected \[4\] on .*, got \[3\]", length_B=arguments["length_B"][1:])
    refused(
        TypeError,
        r"^length_B is of another type; expected torch.int32 or torch.int64, got torch.float32",
        length_B=arguments["length_B"].float(),
    )
    refused(
        TypeError,
        r"^target is of another type; expected torch.int64, got torch.float64",
        targets=targets._replace(target=targets.target.double()),
    )
    refused(
        ValueError,
        r"^target belongs .* expected \[4, 3\] on .*, got \[4, 2\]",
        targets=targets._replace(target=torch.ones(4, 2, device=DEVICE)),
    )
    refused(
        ValueError,
        r"^absent_C belongs .* expected \[3\] on .*, got \[2\]",
        targets=LabelSetTargets(torch.ones(4, 3).to(targets[1]), targets[1], targets[1][1:], FOCUS),
    )
    refused(
        ValueError,
        r"^squared_norm_VBT has no gradient here, and one was asked for; pass squared_norm_VBT.detach\(\)",
        squared_norm_VBT=arguments["squared_norm_VBT"].clone().requires_grad_(),
    )
    refused(ValueError, r"^impl chooses the implementation", impl="fast")


@needs_triton
def test_the_kernels_refuse_types_and_sizes_that_are_not_theirs() -> None:
    with pytest.raises(TypeError, match=r"^the kernels of the readout have one type; expected torch.float32, got"):
        read_out_loss(**SMALL.arguments(), impl="triton")
    large = Case(1, 1, 1, 129, 1, 2).arguments()
    with pytest.raises(
        ValueError, match=r"^the kernels of the readout are for 1 <= D <= 128.*got D = 129, S = 1, C = 2"
    ):
        read_out_loss(**converted(large, torch.float32), impl="triton")
    assert read_out_loss(**large, impl="reference").isfinite()


def test_what_fits_the_kernels_is_told_before_they_are_asked() -> None:
    assert fits(1, 1, 1)
    assert fits(128, 16, 32)
    assert fits(32, 1, 2048)
    for width, seeds, labels in ((0, 1, 2), (129, 1, 2), (32, 0, 2), (32, 17, 2), (32, 1, 0), (32, 1, 2049)):
        assert not fits(width, seeds, labels)
