"""`textcls web`: the page as static files that run the model in the browser."""

from pathlib import Path

import click

from textcls.cli.options import PATH, model_argument
from textcls.cli.outputs import NamedPath
from textcls.display.html import site


@click.command(epilog="Example: textcls web tickets.onnx --output site --runtime node_modules/onnxruntime-web/dist")
@model_argument
@click.option(
    "-o",
    "--output",
    type=NamedPath(path_type=Path, file_okay=False),
    required=True,
    help="Folder to create; a folder that holds other files is refused.",
)
@click.option(
    "--runtime",
    type=PATH,
    help=(
        "Folder of onnxruntime-web: node_modules/onnxruntime-web/dist after npm install onnxruntime-web. Not "
        "shipped with textcls because of its size, 14 MB.  [required]"
    ),
)
def web(model: Path, output: Path, runtime: Path | None) -> None:
    """Write the page of textcls serve as static files that run MODEL in the browser: no server, and nothing is sent.

    Any web server can serve the folder. The model file is copied unchanged.
    """
    size = site.write(model, output, runtime)
    click.echo(f"{output}, {size / 1e6:.1f} MB. Look at it: python -m http.server --directory {output}")
