"""Who may import whom: `textcls` runs without PyTorch, the kernels stand alone, what is optional is imported late."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUN_TIME = ROOT / "textcls"
TRAINING = ROOT / "training" / "textcls_training"
KERNELS = ROOT / "kernels" / "textcls_kernels"

# `onnxruntime` is another package than `onnx`.
NEVER_AT_RUN_TIME = {"torch", "onnx", "onnxscript", "numba", "triton", "textcls_training", "textcls_kernels"}
# Beyond the standard library and `textcls`, by part of the package; the first prefix that fits counts.
MAY_IMPORT = (
    ("cli/", {"click"}),
    ("display/terminal/", {"numpy", "rich"}),
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
    ("evaluation/", {"numpy", "sklearn", "scipy"}),
    ("data/", {"numpy", "pyarrow"}),
    ("", {"numpy", "onnxruntime", "mmh3"}),
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


@pytest.mark.parametrize("path", files(RUN_TIME), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_run_time_modules_import_only_what_their_part_may(path: Path) -> None:
    found = set(imports(path.read_text(encoding="utf-8")))
    assert not found & NEVER_AT_RUN_TIME
    inside = path.relative_to(RUN_TIME).as_posix()
    allowed = next(names for prefix, names in MAY_IMPORT if inside.startswith(prefix))
    assert found - set(sys.stdlib_module_names) - {"textcls"} <= allowed


def test_kernels_import_nothing_of_ours() -> None:
    for path in files(KERNELS):
        assert not {"textcls", "textcls_training"} & set(imports(path.read_text(encoding="utf-8"))), path


# Rooms of the training package, from the bottom up: each may import those before it.
ROOMS = ("vectors", "config", "data", "models", "fit", "export", "pipeline", "studies", "cli")
ROOM_OF = {"training_report": "pipeline", "api": "cli", "sklearn": "cli", "cli_options": "config"}
# Fitting and exporting know nothing of each other.
NEVER = {("export", "fit"), ("fit", "export")}


def training_room(module: str) -> str:
    return ROOM_OF.get(module, module)


@pytest.mark.parametrize("path", files(TRAINING), ids=lambda path: path.relative_to(TRAINING).as_posix())
def test_rooms_of_training_import_only_downwards_and_fit_and_export_never_each_other(path: Path) -> None:
    room = training_room(path.relative_to(TRAINING).with_suffix("").parts[0])
    for module in training_modules(path.read_text(encoding="utf-8")):
        other = training_room(module)
        assert ROOMS.index(other) <= ROOMS.index(room), f"{room} imports {module}"
        assert (room, other) not in NEVER


def training_modules(source: str) -> Iterator[str]:
    """First names below `textcls_training` that a module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "textcls_training":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("textcls_training."):
            yield str(node.module).split(".")[1]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (parts[1] for parts in names if parts[0] == "textcls_training" and len(parts) > 1)


def test_the_options_of_training_need_no_pytorch() -> None:
    for path in files(TRAINING / "config"):
        assert not NEVER_AT_RUN_TIME - {"textcls_training"} & set(imports(path.read_text(encoding="utf-8"))), path


def test_triton_is_imported_by_the_kernels_alone() -> None:
    for path in files(TRAINING):
        assert "triton" not in set(imports(path.read_text(encoding="utf-8"))), path


def test_nothing_reads_or_writes_pickles() -> None:
    for path in [*files(RUN_TIME), *files(TRAINING), *files(KERNELS)]:
        found = set(imports(path.read_text(encoding="utf-8")))
        assert not found & {"pickle", "cPickle", "joblib", "dill", "cloudpickle", "marshal", "shelve"}, path


def test_importing_the_package_imports_nothing_that_only_commands_or_training_need() -> None:
    modules = run_fresh("import json, sys, textcls; print(json.dumps(list(sys.modules)))")
    loaded = {name.partition(".")[0] for name in json.loads(modules)}
    assert {"textcls", "onnxruntime", "numpy", "mmh3"} <= loaded
    late = {"click", "rich", "fastapi", "uvicorn", "pydantic", "starlette", "sklearn", "scipy", "pyarrow", "csv"}
    assert not loaded & (late | NEVER_AT_RUN_TIME)


def test_without_any_extra_a_model_loads_predicts_and_explains(model_path: Path) -> None:
    code = """
import sys
blocked = {"torch", "onnx", "onnxscript", "numba", "triton", "sklearn", "scipy", "fastapi", "uvicorn", "pydantic",
           "starlette", "pyarrow", "textcls_training", "textcls_kernels"}
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


# The rooms of textcls

# From the ground up: a room is a module or a folder, and imports from its own floor's folder and from floors below.
FLOORS = (
    ("errors", "_unicode", "contrast"),
    ("_util", "labels", "sequences", "tokenizer"),
    ("features", "explanation"),
    ("artifact", "data", "prediction", "sub_token_attribution"),
    ("data_quality", "graph"),
    ("cost", "self_test"),
    ("classifier",),
    ("batch", "global_explanation", "training"),
    ("evaluation",),
    ("display",),
    ("__init__",),
    ("server",),
    ("cli",),
    ("__main__",),
)
# Notebooks ask an answer to show itself: the one way up, taken when it is asked.
HOOK = "_repr_html_"


def module_path(package: Path, name: str) -> Path | None:
    """The file of a module of `package` by its dotted name; None if there is no such module."""
    place = package.parent / Path(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imported_files(path: Path, package: Path) -> set[Path]:
    """The files of `package` that a file imports, at its top or late, for types or at run time; not in the hook."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hooks = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == HOOK]
    hidden = {child for hook in hooks for child in ast.walk(hook)}
    names: list[str] = []
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [name if module_path(package, name) else node.module for name in inside]
    found = {module_path(package, name) for name in names if name.partition(".")[0] == package.name}
    return {file for file in found if file is not None}


def room_of(path: Path) -> str:
    return path.relative_to(RUN_TIME).parts[0].removesuffix(".py")


def test_every_room_of_textcls_has_its_floor() -> None:
    assert {room_of(path) for path in files(RUN_TIME)} == {room for floor in FLOORS for room in floor}


@pytest.mark.parametrize("path", files(RUN_TIME), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_room_of_textcls_imports_from_the_floors_below_alone(path: Path) -> None:
    floor_of = {room: number for number, floor in enumerate(FLOORS) for room in floor}
    room = room_of(path)
    others = {room_of(file) for file in imported_files(path, RUN_TIME)} - {room}
    assert {other for other in others if floor_of[other] >= floor_of[room]} == set()


def test_no_modules_of_textcls_import_each_other_in_a_circle() -> None:
    graph = {path: imported_files(path, RUN_TIME) for path in files(RUN_TIME)}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(path.relative_to(ROOT).as_posix() for path in error.args[1]))


def test_a_circle_of_imports_is_found(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "a.py").write_text("from house import b\n")
    (package / "b.py").write_text("def late():\n    from house.a import name\n")
    (package / "c.py").write_text("class C:\n    def _repr_html_(self):\n        from house import a\n")
    graph = {path: imported_files(path, package) for path in files(package)}
    assert graph == {
        package / "a.py": {package / "b.py"},
        package / "b.py": {package / "a.py"},
        package / "c.py": set(),
    }
    with pytest.raises(CycleError, match="nodes are in a cycle"):
        list(TopologicalSorter(graph).static_order())
