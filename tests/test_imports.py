"""Who may import whom: `textcls` runs without PyTorch, the kernels stand alone, parts import downwards, no circles.

What a module imports is read from its source: at its top or late, by statement or by call, for types or at run time.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from textcls_training.torch_parts import TorchPart

ROOT = Path(__file__).parent.parent
RUN_TIME = ROOT / "textcls"
TRAINING = ROOT / "training" / "textcls_training"
TORCH = ROOT / "training" / "textcls_torch"
KERNELS = ROOT / "kernels" / "textcls_kernels"
Graph = dict[str, set[str]]

# `onnxruntime` is another package than `onnx`.
OURS = {"textcls_training", "textcls_torch", "textcls_kernels"}
NEVER_AT_RUN_TIME = {"torch", "onnx", "numba", "triton", *OURS}
# Beyond the standard library and `textcls`, by part of the package; the first prefix that fits counts.
MAY_IMPORT = (
    ("cli/", {"click"}),
    ("display/terminal/", {"numpy", "rich", "IPython"}),
    ("display/plots/", {"numpy", "rich", "matplotlib"}),
    (
        "server/",
        {
            "numpy",
            "fastapi",
            "httptools",
            "opentelemetry",
            "orjson",
            "prometheus_client",
            "pydantic",
            "pydantic_core",
            "starlette",
            "uvicorn",
        },
    ),
    ("annotation/", {"httpx2", "openai"}),
    ("evaluation/reporting/", {"numpy", "scipy", "mlflow"}),
    ("evaluation/", {"numpy", "sklearn", "scipy"}),
    ("explain/clusters/", {"numpy", "sklearn", "scipy", "threadpoolctl"}),
    ("data/", {"numpy", "backports", "compression", "ijson", "openpyxl", "pyarrow"}),
    ("jobs/", {"ray"}),
    ("", {"budoux", "numpy", "onnxruntime", "mmh3"}),
)


def files(package: Path) -> list[Path]:
    found = sorted(package.rglob("*.py"))
    assert found
    return found


def imports(source: str) -> Iterator[str]:
    """Top-level names of all packages that a module imports, at its top or late, by statement or by call."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value.partition(".")[0]


def run_fresh(code: str, *args: str | Path) -> str:
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "import torch.nn as nn",
        "from torch.nn import functional",
        "def late():\n    import torch",
        "def late():\n    from torch import Tensor",
        "import importlib\nimportlib.import_module('torch.nn')",
        "from importlib import import_module\nimport_module('torch')",
        "__import__('torch')",
        "if TYPE_CHECKING:\n    from torch import Tensor",
    ],
)
def test_no_way_to_import_escapes_the_walk(source: str) -> None:
    assert "torch" in set(imports(source))


def test_run_time_modules_import_only_what_their_part_may() -> None:
    for path in files(RUN_TIME):
        found = set(imports(path.read_text(encoding="utf-8")))
        assert not found & NEVER_AT_RUN_TIME, path
        inside = path.relative_to(RUN_TIME).as_posix()
        allowed = next(names for prefix, names in MAY_IMPORT if inside.startswith(prefix))
        assert found - set(sys.stdlib_module_names) - {"textcls"} <= allowed, path


def test_kernels_import_nothing_of_ours() -> None:
    for path in files(KERNELS.parent):  # and so do their examples and their benchmark
        assert not {"textcls", "textcls_training", "textcls_torch"} & set(imports(path.read_text(encoding="utf-8"))), (
            path
        )


# Fitting, with a teacher or without, and exporting know nothing of each other.
NEVER = (("export", "fit"), ("fit", "export"), ("export", "distillation"), ("distillation", "export"))


@pytest.mark.parametrize(("part", "other"), NEVER)
def test_fit_and_export_never_import_each_other(part: str, other: str) -> None:
    for module, found in graph_of(TRAINING).items():
        if module.startswith(f"textcls_training.{part}."):
            assert not [each for each in found if each.startswith(f"textcls_training.{other}.")], module


def test_the_options_of_training_need_no_pytorch() -> None:
    for path in files(TRAINING / "config"):
        assert not NEVER_AT_RUN_TIME - {"textcls_training"} & set(imports(path.read_text(encoding="utf-8"))), path


# The one door from training to what needs PyTorch, and who asks there.
DOOR = "textcls_training.torch_parts"
AT_THE_DOOR = {
    "config.resolve",
    "distillation.run",
    "export.heads.scoring_head",
    "export.prune",
    "fit.cross_fit",
    "fit.device",
    "fit.threads",
    "pipeline.training",
    "pretraining.run",
}
BEHIND_THE_WALL = {"torch", "textcls_torch", "textcls_kernels"}


def test_training_reaches_what_needs_pytorch_by_one_door_alone() -> None:
    for name, source in sources(TRAINING).items():
        reached = BEHIND_THE_WALL & set(imports(source)) | {"textcls_torch"} & texts_of_code(source)
        assert not reached or name == DOOR, name
    asking = {name for name, found in graph_of(TRAINING).items() if DOOR in found}
    assert asking == {f"textcls_training.{name}" for name in AT_THE_DOOR}


def test_every_part_that_is_asked_for_at_the_door_is_there() -> None:
    for part in get_args(TorchPart):
        assert (TORCH / f"{part.replace('.', '/')}.py").exists(), part


def texts_of_code(source: str) -> set[str]:
    """The first names of all strings of a module that could be those of modules, such as `import_module` takes."""
    constants = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return {value.partition(".")[0] for value in constants if isinstance(value, str) and " " not in value}


def test_triton_is_imported_by_the_kernels_alone() -> None:
    for path in [*files(TRAINING), *files(TORCH)]:
        assert "triton" not in set(imports(path.read_text(encoding="utf-8"))), path


def test_nothing_reads_or_writes_pickles() -> None:
    for path in [*files(RUN_TIME), *files(TRAINING), *files(TORCH), *files(KERNELS)]:
        found = set(imports(path.read_text(encoding="utf-8")))
        assert not found & {"pickle", "cPickle", "joblib", "dill", "cloudpickle", "marshal", "shelve"}, path


def test_importing_the_package_imports_nothing_that_only_commands_or_training_need() -> None:
    modules = run_fresh(
        "import json, sys, textcls; few = len(sys.modules); textcls.Classifier; assert few < len(sys.modules) / 2; "
        "print(json.dumps(list(sys.modules)))"
    )
    loaded = {name.partition(".")[0] for name in json.loads(modules)}
    assert {"textcls", "onnxruntime", "numpy", "mmh3"} <= loaded
    late = {"click", "rich", "fastapi", "uvicorn", "pydantic", "starlette", "sklearn", "scipy", "pyarrow", "csv"}
    assert not loaded & (late | NEVER_AT_RUN_TIME)


def test_without_any_extra_a_model_loads_predicts_and_explains(model_path: Path) -> None:
    code = """
import sys
blocked = {"torch", "onnx", "numba", "triton", "sklearn", "scipy", "fastapi", "uvicorn", "pydantic",
           "starlette", "pyarrow", "textcls_training", "textcls_torch", "textcls_kernels"}
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hook())
import textcls
answer = textcls.Classifier.load(sys.argv[1]).predict("my card was charged twice", explain=True)
print(answer.label, len(answer.explanation.tokens))
from textcls.cli import main
main(["explain", sys.argv[1], "my card was charged twice", "--json"], standalone_mode=False)
assert not blocked & {name.partition(".")[0] for name in sys.modules}
"""
    first, second = run_fresh(code, model_path).splitlines()
    assert first == "billing 5"
    assert json.loads(second)["label"] == "billing"


# The parts of textcls, and those of its service

# From the ground up: a part is a module or a folder, and imports from its own layer's folder and from layers below.
LAYERS_OF_TEXTCLS = (
    ("errors",),
    ("_util",),
    ("model",),
    ("data", "versions"),
    ("explain",),
    ("jobs",),
    ("evaluation",),
    ("annotation", "api", "labelling"),
    ("display",),
    ("__init__",),
    ("server",),
    ("cli",),
    ("__main__",),
)
LAYERS_OF_THE_MODEL = (
    ("__init__", "_unicode", "contrast", "prototypes", "excerpts"),
    ("labels", "sequences", "tokenizer"),
    ("cell_values", "label_paths", "units"),
    ("columns",),
    ("explanation", "features", "label_sets", "text_columns"),
    ("artifact", "prediction", "sub_token_attribution"),
    ("learned_texts", "model_file"),
    ("graph",),
    ("cost", "self_test"),
    ("classifier",),
    ("teaching",),
)
LAYERS_OF_THE_SERVICE = (
    ("settings", "problems", "monitoring"),
    ("system", "admission"),
    ("models",),
    ("inference",),
    ("service",),
    ("http",),
    ("routes",),
    ("application",),
    ("processes",),
    ("__init__",),
)
LAYERS_OF_TRAINING = (
    ("__init__", "torch_parts", "vectors"),
    ("config",),
    ("data",),
    ("models", "state"),
    ("fit", "export"),
    ("distillation",),
    ("pipeline", "pretraining"),
    ("audit", "labelling"),
    ("api",),
    ("cli", "sklearn"),
    ("tuning",),
    ("learning_curve",),
)
LAYERS_BEHIND_THE_WALL = (
    ("__init__", "models"),
    ("distillation", "export", "fit"),
    ("pretraining",),
)
LAYERS = {
    RUN_TIME: LAYERS_OF_TEXTCLS,
    RUN_TIME / "model": LAYERS_OF_THE_MODEL,
    RUN_TIME / "server": LAYERS_OF_THE_SERVICE,
    TRAINING: LAYERS_OF_TRAINING,
    TORCH: LAYERS_BEHIND_THE_WALL,
}


def sources(*packages: Path) -> dict[str, str]:
    """The modules of packages, by their dotted names."""
    return {
        module_name(package, path): path.read_text(encoding="utf-8") for package in packages for path in files(package)
    }


def module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def taken(source: str) -> dict[str, set[str]]:
    """What a module imports, at its top, late, or for type checkers: from each package its names, none for itself."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


def import_graph(sources: Mapping[str, str]) -> Graph:
    """Which of the modules `sources`, by name, imports which; a package stands for its own `__init__` alone."""
    graph: Graph = {}
    for name, source in sources.items():
        found = set()
        for package, names in taken(source).items():
            modules = {f"{package}.{each}" for each in names} & set(sources)
            # `from package import module` imports the module; the package only where a name of its own is taken.
            found |= modules if len(modules) == len(names) > 0 else modules | {package}
        graph[name] = (found & set(sources)) - {name}
    return graph


@cache
def graph_of(*packages: Path) -> Graph:
    """Which module of some packages imports which."""
    return import_graph(sources(*packages))


def circles(graph: Graph) -> list[set[str]]:
    """The strongly connected parts of more than one module."""
    reach = {name: reachable(graph, name) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reach[name] if name in reach[other]}
        if circle and circle not in found:
            found.append(circle)
    return found


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def package_name(package: Path) -> str:
    """The dotted name of a folder."""
    whole = next(each for each in (RUN_TIME, TRAINING, TORCH) if package.is_relative_to(each))
    return module_name(whole, package / "__init__.py")


def part_of(module: str, package: Path) -> str:
    """The part of a package to which a module belongs: a folder, or a file beside the folders."""
    inside = module.removeprefix(package_name(package)).removeprefix(".")
    return inside.partition(".")[0] or "__init__"


@pytest.mark.parametrize("package", LAYERS, ids=lambda package: package.name)
def test_every_part_has_its_layer(package: Path) -> None:
    parts = {path.relative_to(package).parts[0].removesuffix(".py") for path in files(package)}
    assert parts == {part for layer in LAYERS[package] for part in layer}


@pytest.mark.parametrize("package", LAYERS, ids=lambda package: package.name)
def test_a_part_imports_from_the_layers_below_alone(package: Path) -> None:
    layer_of = {part: number for number, layer in enumerate(LAYERS[package]) for part in layer}
    graph, within = graph_of(RUN_TIME, TRAINING, TORCH), package_name(package)
    for module in (name for name in graph if f"{name}.".startswith(f"{within}.")):
        part = part_of(module, package)
        inside = {part_of(other, package) for other in graph[module] if f"{other}.".startswith(f"{within}.")}
        assert {other for other in inside - {part} if layer_of[other] >= layer_of[part]} == set(), module


# Circles


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Of all four packages together."""
    graph = graph_of(RUN_TIME, TRAINING, TORCH, KERNELS)
    assert [sorted(circle) for circle in circles(graph)] == []


def test_no_modules_of_textcls_import_each_other_in_a_circle() -> None:
    assert [sorted(circle) for circle in circles(graph_of(RUN_TIME))] == []


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("from package import b\n")
    (package / "b.py").write_text("def late():\n    from package.a import name\n")
    graph = graph_of(package)
    assert graph == {"package.a": {"package.b"}, "package.b": {"package.a"}}
    assert circles(graph) == [{"package.a", "package.b"}]


@pytest.mark.parametrize(
    "late",
    [
        "import b",
        "from b import name",
        "def late():\n    import b",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from b import name",
    ],
)
def test_no_way_to_import_hides_a_circle(late: str) -> None:
    assert circles(import_graph({"a": late, "b": "import c", "c": "from a import name"})) == [{"a", "b", "c"}]


def test_modules_of_a_package_are_no_circle_with_it() -> None:
    assert circles(import_graph({"p": "from p.one import x", "p.one": "from p import two", "p.two": ""})) == []
    assert circles(import_graph({"p": "from p.one import x", "p.one": "from p import y"})) == [{"p", "p.one"}]
