"""The site of the guides: every page has its place, and a link that leads nowhere or elsewhere is found."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    """The script that builds the site; what it builds with is not needed here."""
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "scripts" / "docs_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_laid_out_and_in_the_navigation(builder: ModuleType, tmp_path: Path) -> None:
    builder.lay_out(tmp_path)
    navigation = (tmp_path / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
    listed = {line.split(": ")[-1] for line in navigation.splitlines() if line.endswith(".md")}
    pages = {path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.md")}
    assert listed == pages
    # What pages link to and is not a page comes along.
    assert (tmp_path / "pages" / "docs" / "page.png").is_file()
    assert (tmp_path / "pages" / "examples" / "classify.mjs").is_file()


def test_links_that_lead_nowhere_and_what_is_loaded_from_elsewhere_are_found(
    builder: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="other.html#here">a</a><a href="#top">b</a><a href="https://example.org">c</a>'
    )
    (tmp_path / "other.html").write_text('<p id="here"></p><a href="index.html">a</a>')
    assert builder.problems(tmp_path) == []
    (tmp_path / "other.html").write_text(
        '<a href="gone.html">a</a><a href="index.html#no">b</a><script src="https://example.org/x.js"></script>'
    )
    assert builder.problems(tmp_path) == [
        "index.html: other.html#here names no heading",
        "other.html loads https://example.org/x.js from elsewhere",
        "other.html: gone.html leads nowhere",
        "other.html: index.html#no names no heading",
    ]
