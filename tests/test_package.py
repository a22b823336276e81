"""What is shipped: the files of the wheel, its metadata, and the public names."""

import doctest
import inspect
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import textcls
from textcls import server
from textcls._util.optional_dependencies import WEIGHT_OF_EXTRA
from textcls_training.sklearn import TextClassifier

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden" / "api.txt"
PACKAGES = (
    ROOT / "textcls",
    ROOT / "training" / "textcls_training",
    ROOT / "training" / "textcls_torch",
    ROOT / "kernels" / "textcls_kernels",
)
SERVE = {"fastapi", "httptools", "orjson", "prometheus-client", "uvicorn", "uvloop"}
TRAIN = {"onnx", "numba", "safetensors", "scikit-learn", "scipy"}
TORCH = {"torch"}
TABLES = {"pyarrow", "openpyxl", "ijson", "backports-zstd"}
HEAVY = {"triton", *TABLES, *SERVE, *TRAIN}
OTEL = {"opentelemetry-api", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of a copy of the code with stray files in it, as editors, patches and experiments leave them."""
    copy, folder = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for package in PACKAGES:
        inside = copy / package.relative_to(ROOT)
        shutil.copytree(package, inside, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("weights.bin", "__init__.py.orig", "notes.md"):
            (inside / name).touch()
    shutil.copytree(ROOT / "kernels" / "examples", copy / "kernels" / "examples")  # beside a package, and not shipped
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.iterdir()
    assert path.name == f"textcls-{textcls.__version__}-py3-none-any.whl"
    # Read into memory, so that no file stays open.
    content = zipfile.ZipFile(path)
    content.close()
    return content


@pytest.fixture(scope="module")
def contents(wheel: zipfile.ZipFile) -> dict[str, bytes]:
    assert wheel.filename is not None
    with zipfile.ZipFile(wheel.filename) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(scope="module")
def metadata(contents: dict[str, bytes]) -> Message:
    return Parser().parsestr(contents[f"textcls-{textcls.__version__}.dist-info/METADATA"].decode())


@pytest.fixture(scope="module")
def requirements(metadata: Message) -> dict[str, dict[str, Requirement]]:
    """The requirements by extra ("" for the base) and name."""
    found: dict[str, dict[str, Requirement]] = defaultdict(dict)
    for line in metadata.get_all("Requires-Dist", []):
        extra = re.search(r"extra == '(\w+)'", line.replace('"', "'"))
        requirement = Requirement(line)
        found[extra[1] if extra else ""][requirement.name] = requirement
    return found


# The wheel


def test_the_wheel_holds_the_code_of_the_three_packages_and_nothing_else(contents: dict[str, bytes]) -> None:
    code = {
        path.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for path in [
            *package.rglob("*.py"),
            *package.glob("display/html/assets/*"),
            *package.glob("demo/*"),
            *package.glob("model/*.json"),
            *package.glob("vectors/english/*"),
            package / "py.typed",
        ]
    }
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert set(contents) == code | {f"textcls-{textcls.__version__}.dist-info/{name}" for name in about}


def test_the_wheel_ships_the_files_as_they_are_here(contents: dict[str, bytes]) -> None:
    for package in PACKAGES:
        path = package / "__init__.py"
        assert contents[path.relative_to(package.parent).as_posix()] == path.read_bytes()


def test_all_three_packages_are_typed() -> None:
    for package in PACKAGES:
        assert (package / "py.typed").is_file()


def test_the_program_is_an_entry_point(contents: dict[str, bytes]) -> None:
    points = contents[f"textcls-{textcls.__version__}.dist-info/entry_points.txt"].decode()
    assert "[console_scripts]\ntextcls = textcls.__main__:run" in points


# Its metadata


def test_name_version_licence_and_python_are_told(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("textcls", textcls.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert metadata["Requires-Python"] == ">=3.11"


def test_every_extra_is_there(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "serve",
        "train",
        "torch",
        "teacher",
        "parquet",
        "tables",
        "plots",
        "ray",
        "mlflow",
        "kernels",
        "tune",
        "annotate",
        "otel",
        "all",
        "dev",
    }


def test_the_base_install_needs_five_small_packages(requirements: dict[str, dict[str, Requirement]]) -> None:
    assert set(requirements[""]) == {"budoux", "click", "mmh3", "numpy", "onnxruntime", "rich"}


def test_each_extra_says_what_it_weighs_in_messages_and_on_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"dev"}
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| .*? \| ([^|]*[MG]B[^|]*) \|", page, re.MULTILINE))
    assert set(WEIGHT_OF_EXTRA) == set(rows) == extras
    for extra, weight in WEIGHT_OF_EXTRA.items():
        assert re.findall("[0-9.]+ [MG]B", weight) == re.findall("[0-9.]+ [MG]B", rows[extra])


def test_extras_bring_what_their_commands_need(requirements: dict[str, dict[str, Requirement]]) -> None:
    assert set(requirements["serve"]) == SERVE
    assert set(requirements["otel"]) == OTEL
    assert set(requirements["train"]) == TRAIN
    assert set(requirements["torch"]) - {"textcls", *requirements["train"]} == TORCH
    assert set(requirements["teacher"]) - {"textcls", *TRAIN, *TORCH} == {"sentence-transformers"}
    assert set(requirements["annotate"]) == {"openai"}
    assert set(requirements["tune"]) - {"textcls", *requirements["train"]} == {"optuna"}
    assert set(requirements["parquet"]) == {"pyarrow"}
    assert set(requirements["kernels"]) == {"triton"}
    extras = ("serve", "train", "parquet", "tables", "kernels")
    # Some builders keep the reference to another extra, some unfold it.
    assert set().union(*(requirements[extra] for extra in extras)) - {"textcls"} == HEAVY


def test_all_is_what_needs_no_pytorch_no_gpu_and_no_cluster(requirements: dict[str, dict[str, Requirement]]) -> None:
    every = dict(requirements["all"])
    # Some builders keep the reference to the other extras, some unfold it.
    if reference := every.pop("textcls", None):
        every.update(*(requirements[extra].items() for extra in (*reference.extras, "parquet")))
        every.pop("textcls", None)
    assert set(every) == HEAVY - {"triton"} | {"matplotlib", "optuna"}


# The public names


def test_public_names_are_exactly_those_of_the_list() -> None:
    told = {name for name, value in vars(textcls).items() if getattr(value, "__module__", "") == "textcls.errors"}
    assert set(textcls._MODULE_OF) | told | {"__version__"} == set(textcls.__all__) == set(dir(textcls))
    assert len(set(textcls.__all__)) == len(textcls.__all__)
    assert all(getattr(textcls, name).__name__ == name for name in textcls._MODULE_OF)
    with pytest.raises(AttributeError, match="module 'textcls' has no attribute 'nothing'"):
        _ = textcls.nothing  # type: ignore[attr-defined]


def signatures() -> Iterator[str]:
    """A line for each public name: of functions and methods with their parameters and defaults, without types."""
    for owner, name in [(textcls, each) for each in textcls.__all__] + [(server, "create_app"), (server, "Settings")]:
        value = getattr(owner, name)
        yield from _lines(f"{owner.__name__}.{name}", value)
    yield from _lines("textcls_training.sklearn.TextClassifier", TextClassifier)


def _lines(name: str, value: object) -> Iterator[str]:
    if not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
        yield name
        return
    parameters = inspect.signature(value).parameters.values()
    yield f"{name}({', '.join(str(each.replace(annotation=each.empty)) for each in parameters)})"
    if isinstance(value, type):
        for attribute in sorted(vars(value)):
            found = inspect.getattr_static(value, attribute)
            function = getattr(value, attribute) if isinstance(found, classmethod | staticmethod) else found
            if not attribute.startswith(("_", "set_")) and not isinstance(found, type):  # set_...: of scikit-learn
                yield from _lines(f"{name}.{attribute}", function)


def test_public_names_and_their_parameters_stay_as_they_are() -> None:
    """What docs/stability.md promises. After a change on purpose: `python -m tests.test_package`."""
    assert [*signatures()] == GOLDEN.read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in textcls.__all__ if name != "__version__"])
def test_every_public_name_is_documented_with_an_example_that_holds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_path: Path, several_labels_path: Path
) -> None:
    documented = inspect.getdoc(getattr(textcls, name)) or ""
    assert "\nExamples:\n" in documented
    for source, copy in (
        (model_path, "tickets.onnx"),
        (several_labels_path, "tags.onnx"),
        (ROOT / "textcls/demo/support_tickets.csv", "tickets.csv"),
    ):
        shutil.copy(source, tmp_path / copy)
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(documented, {"textcls": textcls}, name, None, 0)
    assert example.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed == 0


def test_the_version_has_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:[a-z]+\d+)?", textcls.__version__)


def test_each_package_that_is_needed_has_an_oldest_version_to_be_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [need for name, needs in project["optional-dependencies"].items() if name != "dev" for need in needs]
    names = {Requirement(need).name for need in [*project["dependencies"], *extras]} - {"textcls"}
    oldest = runpy.run_path(str(ROOT / "scripts" / "oldest.py"))["oldest"]()
    assert {line.partition("==")[0] for line in oldest} == names
    assert "numpy==1.26.*" in oldest


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in signatures()), encoding="utf-8")
