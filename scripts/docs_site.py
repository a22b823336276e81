"""Build the site of the guides from the files of the repository as they stand, and check every link in it.

python scripts/docs_site.py OUTPUT      with the packages of docs/requirements.txt

The pages keep their places, so that the same relative links hold in the repository and on the site; what they link to
and is no page, such as a source file, comes along.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
PAGES = (
    "*.md",
    "docs/*.md",
    "benchmarks/*.md",
    "kernels/*.md",
    "kernels/benchmarks/*.md",
    "training/*.md",
    "deploy/*.md",
)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def main(output: Path) -> None:
    """Build the site into the folder `output`, which is made anew."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--config-file", "mkdocs.yml"]
        if status := subprocess.run(command, cwd=folder, check=False).returncode:
            sys.exit(status)
        wrong = problems(Path(folder) / "site")
        if wrong:
            sys.exit("\n".join(wrong))
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(Path(folder) / "site", output)


def lay_out(folder: Path) -> None:
    """Copy pages, what they link to, and the configuration to where the builder expects them."""
    found = sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    for page in found:
        copy(page, folder)
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            linked = (page.parent / unquote(link)).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                copy(linked, folder)
    benchmarks = (page for page in found if page.parent.name == "benchmarks")
    listed = "\n".join(f"      - {title(page)}: {page.relative_to(ROOT).as_posix()}" for page in benchmarks)
    written = (ROOT / "docs" / "site.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(written.replace("BENCHMARKS", listed).replace("SOURCE", str(ROOT)), "utf-8")


def copy(path: Path, folder: Path) -> None:
    to = folder / "pages" / path.relative_to(ROOT)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


def title(page: Path) -> str:
    """Return the heading of a page, as a string of YAML."""
    return '"' + page.read_text(encoding="utf-8").splitlines()[0].lstrip("# ").replace('"', "'") + '"'


class Page(HTMLParser):
    """What a page links to, what it loads, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given:
            self.loads.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loads.append(given.get("href", ""))


def problems(site: Path) -> list[str]:
    """Return which links of the site lead nowhere, and what it loads from elsewhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name} loads {link} from elsewhere" for link in page.loads if urlsplit(link).netloc]
        # The page of errors is shown at any address, so its links begin at the top.
        if name.as_posix() == "404.html":
            continue
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].anchors:
                found.append(f"{name}: {link} names no heading")
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
