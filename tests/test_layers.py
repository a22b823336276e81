"""Who may import whom: `textcls` runs without PyTorch, the kernels stand alone, what is optional is imported late."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
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
    ("cli/serve.py", {"click", "rich", "fastapi", "uvicorn"}),
    ("cli/", {"numpy", "click", "rich"}),
    (
        "server/",
        {
            "numpy",
            "fastapi",
            "opentelemetry",
            "orjson",
            "prometheus_client",
            "pydantic",
            "pydantic_core",
            "starlette",
            "uvicorn",
        },
    ),
    ("metrics.py", {"numpy", "sklearn"}),
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
