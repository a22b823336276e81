"""What needs an extra: a package that is not there is told with the command to type, one that is broken as it is."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from textcls import MissingExtraError
from textcls._util import optional_dependencies
from textcls.data import parquet
from textcls.evaluation import label_set_metrics, metrics, selective_prediction
from textcls.jobs import cluster
from textcls_training.vectors import sentence_encoder

ROOT = Path(__file__).parent.parent.parent


def bound() -> None:
    selective_prediction.at(0.5, np.array([0.9]), np.array([True])).lower_bound()


def scored() -> None:
    label_set_metrics.report(np.array([[0.9]]), np.array([[True]]), [0.5], ["a"])


ASK: dict[str, Callable[[], object]] = {
    "sklearn": scored,
    "scipy": bound,
    "pyarrow": parquet.require,
    "ray": cluster.require,
}


class Without:
    """An installation without the package of a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == self.name:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def forget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put another package in the place of an installed one: its name, and what its __init__ holds."""

    def put(name: str, content: str) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(content)
        forget(monkeypatch, name)
        monkeypatch.syspath_prepend(tmp_path)

    return put


@pytest.mark.parametrize("name", ASK)
def test_a_package_that_is_not_installed_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    forget(monkeypatch, name)
    monkeypatch.setattr(sys, "meta_path", [Without(name), *sys.meta_path])
    extra = optional_dependencies.EXTRA_OF_PACKAGE[name]
    with pytest.raises(MissingExtraError, match=rf"'{name}', which is not installed \(about .*\); .*\[{extra}\]"):
        ASK[name]()


def test_a_teacher_says_what_to_install_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "sentence_transformers")
    monkeypatch.setattr(sys, "meta_path", [Without("sentence_transformers"), *sys.meta_path])
    said = r"^A teacher needs .* \(about 1.4 GB .*\); run: pip install \"textcls\[teacher\]\"$"
    with pytest.raises(MissingExtraError, match=said):
        sentence_encoder.require()


@pytest.mark.parametrize("name", ASK)
@pytest.mark.parametrize(
    "content",
    ["raise ImportError('it is broken')", "raise ModuleNotFoundError('it is broken', name='{}._core')"],
)
def test_a_package_that_is_broken_shows_its_own_error(
    package: Callable[[str, str], None], name: str, content: str
) -> None:
    package(name, content.format(name))
    with pytest.raises(ImportError, match="it is broken"):
        ASK[name]()


def test_of_a_package_of_several_distributions_each_is_reported_if_it_is_missing() -> None:
    with (
        pytest.raises(MissingExtraError, match=r"--tracing needs .* \"textcls\[otel\]\""),
        optional_dependencies.needed_by("--tracing"),
    ):
        raise ModuleNotFoundError("no exporter", name="opentelemetry.exporter")


def test_what_no_extra_brings_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError, match="no rich"), optional_dependencies.needed_by("textcls"):
        raise ModuleNotFoundError("no rich", name="rich")


def test_what_is_asked_for_by_name_is_given() -> None:
    assert optional_dependencies.load("textcls.evaluation.metrics:require", "a test") is metrics.require
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        optional_dependencies.load("textcls.evaluation.metrics:no_such_thing", "a test")


def test_the_extras_of_the_table_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(optional_dependencies.EXTRA_OF_PACKAGE.values()) <= set(project["optional-dependencies"])


def test_one_module_alone_tells_what_is_missing() -> None:
    catching = re.compile(r"except \(?(ImportError|ModuleNotFoundError)")
    modules = (ROOT / "textcls").rglob("*.py")
    found = [path.name for path in modules if catching.search(path.read_text(encoding="utf-8"))]
    assert found == ["optional_dependencies.py"]
