"""`textcls fetch`: a file from a store, kept only if it is the intended one."""

from pathlib import Path

import click

from textcls._util.atomic_write import check_output_path
from textcls.cli.outputs import TABLE
from textcls.data.fetching import SECONDS
from textcls.data.fetching import fetch as fetch_file
from textcls.model.artifact import MOST_BYTES


@click.command(epilog="Example: textcls fetch s3://models/tickets.onnx --sha256 9f2c... --output tickets.onnx")
@click.argument("url")
@click.option(
    "--sha256",
    required=True,
    metavar="HEX",
    help="The SHA-256 of the file, in hexadecimal, as sha256sum prints it.",
)
@click.option("--output", "-o", type=TABLE, required=True, help="File to write.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=MOST_BYTES,
    show_default=True,
    help="Most bytes that the file may have; more are not fetched.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=SECONDS,
    show_default=True,
    help="Most seconds that all of it may take.",
)
def fetch(url: str, sha256: str, output: Path, max_bytes: int, timeout: float) -> None:
    """Copy the file at URL to --output, and keep it only if it has the expected SHA-256.

    URL begins with https://, http://, or with s3://, gs://, abfs:// or hdfs://, for which pyarrow is needed. A file
    that is there already and has this hash is left as it is, so that the command can be repeated.
    """
    check_output_path(output)
    fetched = fetch_file(url, sha256, output, max_bytes, timeout)
    size = f"{output.stat().st_size:,} bytes"
    click.echo(f"{size} -> {output}" if fetched else f"{output} is there already, {size} with this hash")
