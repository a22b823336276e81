"""`textcls web`: what it writes, and what it refuses."""

import hashlib
import os
import re
import signal
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.service.server import listening, service_of
from textcls import Classifier
from textcls.cli import main
from textcls.display.html import label_page, site
from textcls.display.html.fragments import ASSETS
from textcls.server.models import registry
from textcls.server.settings import Settings


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """A folder that looks like onnxruntime-web's."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for name in (*site.RUNTIME, "ort.all.min.mjs"):
        (folder / name).write_text(name)
    return folder


def test_the_folder_holds_the_page_the_very_same_model_and_what_runs_it(
    model_path: Path, tmp_path: Path, runtime: Path
) -> None:
    output = tmp_path / "new" / "site"
    for _ in range(2):  # What is there is replaced.
        done = CliRunner().invoke(main, ["web", str(model_path), "-o", str(output), "--runtime", str(runtime)])
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{output}, 0.3 MB. Look at it: python -m http.server --directory ")
    found = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    assert found == {*site.static(), "model.onnx", *(f"page/ort/{name}" for name in site.RUNTIME)}
    one, other = (hashlib.sha256(path.read_bytes()).digest() for path in (output / "model.onnx", model_path))
    assert one == other


def test_a_folder_with_files_of_somebody_else_is_left_alone(model_path: Path, tmp_path: Path, runtime: Path) -> None:
    output = tmp_path / "site"
    output.mkdir()
    (output / "index.html").write_text("mine")
    done = CliRunner().invoke(main, ["web", str(model_path), "-o", str(output), "--runtime", str(runtime)])
    assert done.exit_code == 3
    assert "holds files that are not a page of textcls" in done.stderr
    assert [path.read_text() for path in output.iterdir()] == ["mine"]


def test_ctrl_c_leaves_no_half_page(
    model_path: Path, tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def replace_and_interrupt(path: Path, target: Path) -> Path:
        if target.name == "index.html":
            os.kill(os.getpid(), signal.SIGINT)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replace_and_interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = CliRunner().invoke(
            main, ["web", str(model_path), "-o", str(tmp_path / "site"), "--runtime", str(runtime)]
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.exit_code, done.stderr) == (130, "Interrupted; no file was left half-written.\n")
    found = {
        path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*") if path.is_file()
    }
    assert found == {*site.static(), "model.onnx", *(f"page/ort/{name}" for name in site.RUNTIME)}


def test_without_the_runtime_it_says_how_to_get_it(model_path: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["web", str(model_path), "-o", str(tmp_path / "site")])
    assert done.exit_code == 2
    assert "npm install onnxruntime-web" in done.stderr
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_not_the_runtime_is_refused(model_path: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["web", str(model_path), "-o", str(tmp_path / "site"), "--runtime", str(tmp_path)])
    assert done.exit_code == 2
    assert "has no file ort.wasm.min.mjs" in done.stderr


def test_what_is_no_model_is_refused_before_anything_is_written(tmp_path: Path, runtime: Path) -> None:
    (tmp_path / "x.onnx").write_text("no model")
    done = CliRunner().invoke(
        main, ["web", str(tmp_path / "x.onnx"), "-o", str(tmp_path / "site"), "--runtime", str(runtime)]
    )
    assert done.exit_code == 4
    assert not (tmp_path / "site").exists()


def test_a_folder_that_cannot_be_made_is_told(model_path: Path, tmp_path: Path, runtime: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(
        main, ["web", str(model_path), "-o", str(tmp_path / "file" / "site"), "--runtime", str(runtime)]
    )
    assert done.exit_code == 6
    assert done.stderr.startswith("Error: ")


def test_the_model_in_the_folder_is_not_written_over_itself(model_path: Path, tmp_path: Path, runtime: Path) -> None:
    copy = tmp_path / "model.onnx"
    copy.write_bytes(model_path.read_bytes())
    done = CliRunner().invoke(main, ["web", str(copy), "-o", str(tmp_path), "--runtime", str(runtime)])
    assert done.exit_code == 3
    assert "is also the input" in done.stderr


def test_the_two_pages_differ_in_their_answerer_and_their_policy_alone() -> None:
    served, static = site.served(), site.static()
    shared = {path for path in served if served[path] == static.get(path)}
    assert set(served) - shared == {"index.html", "page/answer.mjs"}
    assert set(static) - set(served) == {"page/model.mjs"}
    one, other = (files["index.html"].decode() for files in (served, static))
    assert one == other.replace(" &#x27;wasm-unsafe-eval&#x27;", "")


def test_nothing_in_the_page_comes_from_elsewhere_or_is_markup_made_of_text() -> None:
    for path in ASSETS.iterdir():
        code = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import|url\(", code), path.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", code)


def test_every_file_that_is_shipped_is_used() -> None:
    used = {*site._SHARED, "index.html", "model.mjs", "answer_server.mjs", "answer_browser.mjs"}
    labelling = {*label_page._SHARED, *label_page._OWN, "label.html"}
    assert {path.name for path in ASSETS.iterdir()} == used | labelling


def test_the_page_of_the_server_has_a_strict_policy_and_can_be_switched_off(classifier: Classifier) -> None:
    models = [registry.serve(classifier, "tickets")]
    html = {"accept": "text/html,application/xhtml+xml"}
    with listening(service_of(models)) as address, httpx.Client(base_url=address, trust_env=False) as client:
        page = client.get("/", headers=html)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        for path in re.findall(r'(?:href|src)="(page/[^"]+)"', page.text):
            found = client.get(f"/{path}")
            assert found.status_code == 200, path
            assert found.headers["x-content-type-options"] == "nosniff"
        assert client.get("/page/none.mjs").status_code == 404
        assert client.get("/page/..%2f__init__.py").status_code == 404
        assert client.get("/").json() == {"status": "alive"}
        assert 'textcls_requests_total{route="/page/{name}",status="404"} 1.0' in client.get("/metrics").text
        paths = client.get("/openapi.json").json()["paths"]
        assert {"/predict", "/models/{name}", "/v2/models/{name}/infer", "/vllm/classify"} <= set(paths)
    off = service_of(models, Settings(page=False))
    with listening(off) as address, httpx.Client(base_url=address, trust_env=False) as client:
        assert client.get("/", headers=html).status_code in (404, 405)
        assert client.get("/page/page.mjs").status_code == 404
