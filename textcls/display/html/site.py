"""The page that asks a model, as files: for the server, or static, with the model run in the browser.

Both consist of the same files except one, `answer.mjs`: it asks the server, or runs the model with onnxruntime-web. The
tables of the token rule are those of `textcls.model._unicode`, written out anew each time.
"""

import os
from html import escape
from pathlib import Path
from typing import Final

from textcls._util import interrupts
from textcls._util.atomic_write import atomic_write, check_not_an_input
from textcls.data.columns import TEXT_NAMES
from textcls.display.html.fragments import ASSETS
from textcls.errors import ConfigError, InputError, SurroundingsError
from textcls.model import _unicode
from textcls.model.classifier import Classifier
from textcls.model.units import SENTENCE_ENDS

# What onnxruntime-web needs to run a model without a graphics card: its interface, its loader, itself.
RUNTIME: Final = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
MODEL: Final = "model.onnx"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'"
)
_SCRIPT: Final = "script-src 'self'"
_SHARED: Final = (
    "explanation.css",
    "page.css",
    "icon.svg",
    "page.mjs",
    "columns.mjs",
    "dom.mjs",
    "lines.mjs",
    "table.mjs",
    "explain.mjs",
    "tokens.mjs",
    "tree.mjs",
    "units.mjs",
)
_TABLES: Final = ("WORD", "UNSPACED", "MARK", "SPACE")


def served() -> dict[str, bytes]:
    """Return the files of the page that asks the server it came from, by their paths."""
    return _files("answer_server.mjs", POLICY)


def static() -> dict[str, bytes]:
    """Return the files of the page that runs `model.onnx` itself, by their paths, without model and runtime."""
    policy = POLICY.replace(_SCRIPT, f"{_SCRIPT} 'wasm-unsafe-eval'")
    model = {"page/model.mjs": (ASSETS / "model.mjs").read_bytes()}
    return _files("answer_browser.mjs", policy) | model


def write(model: Path, folder: Path, runtime: Path | None) -> int:
    """Write the static page with its model and its runtime; return how many bytes these are.

    Args:
        model: the model file; it is copied as it is.
        folder: created if missing; the files of a page that was written there before are replaced.
        runtime: a folder with the files of onnxruntime-web, such as its `dist`.

    Raises:
        ConfigError: the runtime is not there.
        ArtifactError: the model file cannot be used.
        InputError: the model is at the place of the page's copy, or the folder contains files that are not such a page.
        SurroundingsError: the folder cannot be written to.
    """
    found = check_runtime(runtime)
    Classifier.load(model)
    check_not_an_input(folder / MODEL, [model])
    _check_folder(folder)
    files = static() | {f"page/ort/{path.name}": path.read_bytes() for path in found} | {MODEL: model.read_bytes()}
    try:
        # An incomplete page would be served as a complete one.
        with interrupts.held_back():
            (folder / "page" / "ort").mkdir(parents=True, exist_ok=True)
            for path, content in files.items():
                with atomic_write(folder / path) as file:
                    file.write(content)
    except OSError as error:
        where = error.filename or folder
        raise SurroundingsError(f"{where} cannot be written: {os.strerror(error.errno or 0)}.") from error
    return sum(map(len, files.values()))


def _check_folder(folder: Path) -> None:
    ours = (folder / "page" / "unicode.mjs").is_file()
    if not ours and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} holds files that are not a page of textcls; name a new folder, or an empty one.")


def check_runtime(runtime: Path | None) -> list[Path]:
    """Return the files of onnxruntime-web in a folder.

    Raises:
        ConfigError: they are not there.
    """
    how = "get it with 'npm install onnxruntime-web' and add --runtime node_modules/onnxruntime-web/dist."
    if runtime is None:
        raise ConfigError(
            f"The page needs onnxruntime-web, which is not shipped with textcls because of its size: {how}"
        )
    for name in RUNTIME:
        if not (runtime / name).is_file():
            raise ConfigError(f"{runtime} has no file {name}, so it is not the dist folder of onnxruntime-web: {how}")
    return [runtime / name for name in RUNTIME]


def _files(answerer: str, policy: str) -> dict[str, bytes]:
    index = (ASSETS / "index.html").read_text(encoding="utf-8").replace("POLICY", escape(policy))
    found = {f"page/{name}": (ASSETS / name).read_bytes() for name in _SHARED}
    return {
        "index.html": index.encode(),
        **found,
        "page/answer.mjs": (ASSETS / answerer).read_bytes(),
        "page/unicode.mjs": unicode_tables().encode(),
        "page/names.mjs": column_names().encode(),
    }


def column_names() -> str:
    """Return the well-known names of text columns, in lower case and without punctuation, as a module of JavaScript."""
    names = ",".join(f'"{name}"' for name in sorted(TEXT_NAMES))
    return f"// The names by which a column of texts is known.\nexport const TEXT_COLUMNS=[{names}];\n"


def unicode_tables() -> str:
    """Return the tables of the token rule, and the marks that end sentences, as a module of JavaScript."""
    lines = ["// Frozen character tables of the token rule, version 1: ranges of code points."]
    for name in _TABLES:
        ranges = ",".join(f"[{first},{last}]" for first, last in getattr(_unicode, name))
        lines.append(f"export const {name}=[{ranges}];")
    lines.append(f"export const SENTENCE_ENDS=[{','.join(str(ord(mark)) for mark in sorted(SENTENCE_ENDS))}];")
    return "\n".join(lines) + "\n"
