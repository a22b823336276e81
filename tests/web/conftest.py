"""A server, the static page, Node and Chromium; what is not installed is skipped with the reason."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.service.server import listening, service_of
from tests.threaded import threaded
from textcls import Classifier
from textcls.display.html import site
from textcls.server.admission.auth import Keys
from textcls.server.models import registry
from textcls.server.service import Service
from textcls.server.settings import Settings

HERE = Path(__file__).parent
Run = Callable[..., Any]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def golden_texts() -> list[str]:
    """Texts in more than ten scripts."""
    rows = json.loads((HERE.parent / "golden" / "texts_v1.json").read_text(encoding="utf-8"))
    return [row["text"] for row in rows]


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


@pytest.fixture(scope="session")
def node_modules() -> Path:
    folder = Path(os.environ.get("TEXTCLS_NODE_MODULES", HERE / "node_modules"))
    if not (folder / "onnxruntime-web").is_dir():
        pytest.skip("onnxruntime-web is not installed: make clients, or npm install in tests/web")
    return folder


@pytest.fixture(scope="session")
def static_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the static page without model and runtime."""
    folder = tmp_path_factory.mktemp("static")
    for path, content in site.static().items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture(scope="session")
def in_node(node: str, static_files: Path) -> Run:
    """Run a module of JavaScript with `given` in scope; return what it assigns to `found`."""

    def run(code: str, given: Any, folder: Path = static_files) -> Any:
        whole = (
            "import { readFileSync as readIt } from 'node:fs';\n"
            "const given = JSON.parse(readIt(0, 'utf8'));\nlet found;\n"
            f"{code}\nprocess.stdout.write(JSON.stringify(found));"
        )
        script = folder / "test.mjs"
        script.write_text(whole, encoding="utf-8")
        command = [node, str(script)]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def service(classifier: Classifier, settings: Settings, **given: Any) -> Service:
    models = [registry.serve(classifier, name) for name in ("tickets", "other")]
    return service_of(models, settings, **given)


@pytest.fixture(scope="session")
def address(classifier: Classifier) -> Iterator[str]:
    """The address of a server with two models."""
    with listening(service(classifier, Settings(max_characters=20_000))) as found:
        yield found


@pytest.fixture(scope="session")
def address_of_several(several_labels: Classifier) -> Iterator[str]:
    """The address of a server whose model gives a text several labels, or none."""
    with listening(service(several_labels, Settings())) as found:
        yield found


@pytest.fixture(scope="session")
def address_of_two_columns(two_columns: Classifier) -> Iterator[str]:
    """The address of a server whose model reads a subject and a body, and has an example."""
    with listening(service(two_columns, Settings())) as found:
        yield found


@pytest.fixture(scope="session")
def locked_address(classifier: Classifier) -> Iterator[str]:
    """The address of a server that wants a key."""
    with listening(service(classifier, Settings(), keys=Keys(["key-of-the-first-client"]))) as found:
        yield found


@pytest.fixture(scope="session")
def site_folder(model_path: Path, node_modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static page with everything it needs."""
    return written(model_path, tmp_path_factory.mktemp("site") / "site", node_modules)


@pytest.fixture(scope="session")
def site_folder_of_several(
    several_labels_path: Path, node_modules: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same of a model that gives a text several labels, or none."""
    return written(several_labels_path, tmp_path_factory.mktemp("several") / "site", node_modules)


def written(model: Path, folder: Path, node_modules: Path) -> Path:
    """A static page in `folder`, with the modules of Node beside it."""
    site.write(model, folder, node_modules / "onnxruntime-web" / "dist")
    (folder.parent / "node_modules").symlink_to(node_modules.resolve())
    return folder


@pytest.fixture(scope="session")
def static_address(site_folder: Path) -> Iterator[str]:
    """The address of the static page, as any web server would serve it."""
    with served(site_folder) as found:
        yield found


@pytest.fixture(scope="session")
def static_address_of_several(site_folder_of_several: Path) -> Iterator[str]:
    """The same of a model that gives a text several labels, or none."""
    with served(site_folder_of_several) as found:
        yield found


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a host of static files, while it is wanted."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with threaded(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A running browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        # A container's root has no sandbox; the pages are ours.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def told(page: Any, where: str, what: str) -> None:
    """Wait until the page says something. Not by a function: its policy refuses to compile one."""
    page.locator(f"#{where}", has_text=what).wait_for(state="attached")


class Visit:
    """A page, and what it did that it must not do."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._note)
        self.address = address
        self.page.goto(address)

    def _hear(self, said: Any) -> None:
        if said.type in ("error", "warning"):
            self.wrong.append(said.text)

    def _dismiss(self, dialog: Any) -> None:
        self.wrong.append(dialog.message)
        dialog.dismiss()

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.address, "blob:")):
            self.wrong.append(f"a request to {request.url}")

    def ready(self) -> Any:
        """Wait for the model; return the page."""
        self.page.wait_for_selector("#classify:enabled")
        return self.page

    def ask(self, text: str) -> Any:
        """Classify a text; return the page."""
        page = self.ready()
        page.fill("#text", text)
        # What a text field makes of line ends is its own affair: the text is what it holds.
        page.click("#classify")
        told(page, "said", "%")
        return page


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Open a page; in the end, nothing must have gone wrong."""
    visits: list[Visit] = []

    def go(address: str, **options: Any) -> Visit:
        visits.append(Visit(chromium, address, **options))
        return visits[-1]

    yield go
    wrong = [what for each in visits for what in each.wrong]
    for each in visits:
        each.context.close()
    assert wrong == []
