"""No module imports itself, by way of others: a reader can start anywhere and go down."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "textcls", ROOT / "training" / "textcls_training", ROOT / "kernels" / "textcls_kernels")
# What a notebook calls to show a value may import late what draws it.
NOTEBOOK_HOOKS = ("_repr_html_", "_repr_mimebundle_", "_ipython_display_")

Graph = dict[str, set[str]]


def module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names that a module imports, at its top, late, or for type checkers; those of notebook hooks left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and node.name in NOTEBOOK_HOOKS:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imported(node)


def import_graph(sources: Mapping[str, str]) -> Graph:
    """Which of the modules `sources`, by name, imports which; a package stands for its own `__init__` alone."""
    graph: Graph = {}
    for name, source in sources.items():
        found = {other for other in imported(ast.parse(source)) if other in sources}
        # `from package import module` imports the module; the package itself only where a name of its own is taken.
        graph[name] = {other for other in found if other != name and not takes_only_modules(source, other, sources)}
    return graph


def takes_only_modules(source: str, package: str, sources: Mapping[str, str]) -> bool:
    """Whether all that `source` takes from `package` are modules in it."""
    taken = [
        f"{package}.{alias.name}" in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module == package
        for alias in node.names
    ]
    return bool(taken) and all(taken)


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


def sources() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            found[module_name(package, path)] = path.read_text(encoding="utf-8")
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert [sorted(circle) for circle in circles(import_graph(sources()))] == []


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


def test_a_notebook_hook_may_import_late_and_modules_of_a_package_are_no_circle_with_it() -> None:
    hook = "class A:\n    def _repr_html_(self):\n        import b"
    assert circles(import_graph({"a": hook, "b": "import a"})) == []
    assert circles(import_graph({"p": "from p.one import x", "p.one": "from p import two", "p.two": ""})) == []
    assert circles(import_graph({"p": "from p.one import x", "p.one": "from p import y"})) == [{"p", "p.one"}]
