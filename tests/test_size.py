"""How large the house is, and how much of it one has to know: figures that a change raises on purpose, or not at all.

They stand in `sizes.json`, as they were when somebody last looked: who makes something larger changes the figure beside
the change, and says in the commit what it pays; who makes it smaller by a twentieth lowers the figure.
"""

import json
import tomllib
from functools import cache

import click
import pytest

from tests.test_imports import KERNELS, ROOT, RUN_TIME, TORCH, TRAINING, graph_of, module_name, reachable
from textcls.cli import COMMANDS, main

FIGURES = json.loads((ROOT / "tests" / "sizes.json").read_text())
PACKAGES = {"textcls": RUN_TIME, "textcls_training": TRAINING, "textcls_torch": TORCH, "textcls_kernels": KERNELS}


@cache
def lines() -> dict[str, int]:
    """The lines of each module."""
    return {
        module_name(package, path): len(path.read_text(encoding="utf-8").splitlines())
        for package in PACKAGES.values()
        for path in package.rglob("*.py")
    }


@cache
def reach(start: str) -> tuple[int, int]:
    """Files and lines that a module reaches by imports, at its top or late; those of types count as well."""
    found = {start, *reachable(graph_of(*PACKAGES.values()), start)} & lines().keys()
    return len(found), sum(lines()[name] for name in found)


def options(command: str) -> int:
    """How many options a command has."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    return sum(isinstance(parameter, click.Option) for parameter in found.params)


def measured() -> dict[str, dict[str, int]]:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {
        "lines": {
            name: sum(count for module, count in lines().items() if module.partition(".")[0] == name)
            for name in PACKAGES
        },
        "files within reach": {start: reach(start)[0] for start in FIGURES["files within reach"]},
        "lines within reach": {start: reach(start)[1] for start in FIGURES["lines within reach"]},
        "options": {"train": options("train"), "all commands": sum(map(options, COMMANDS))},
        "extras": {"all": len(extras)},
    }


@pytest.mark.parametrize("kind", FIGURES)
def test_nothing_grows_unless_somebody_says_so(kind: str) -> None:
    found, figures = measured()[kind], FIGURES[kind]
    assert found.keys() == figures.keys()
    grown = {name: found[name] for name in found if found[name] > figures[name]}
    assert not grown, f"larger than sizes.json says ({kind})"
    shrunk = {name: found[name] for name in found if found[name] < 0.95 * figures[name]}
    assert not shrunk, f"smaller: lower the figures of {kind} in sizes.json"
