"""`textcls demo`: the sample table, for trying everything."""

from importlib import resources
from pathlib import Path
from typing import Final

import click

from textcls._util.atomic_write import atomic_write
from textcls.cli.options import PATH
from textcls.errors import InputError

FILES: Final = ("support_tickets.csv", "support_tickets_test.csv")
_NEXT: Final = """Next:
  textcls train {train} --output tickets.onnx --example "my card was charged twice"
  textcls evaluate tickets.onnx {test}
  textcls explain tickets.onnx "my card was charged twice"
  textcls serve tickets.onnx"""


@click.command(epilog="Example: textcls demo")
@click.argument("folder", type=PATH, default=".")
def demo(folder: Path) -> None:
    """Write a small sample, support tickets with their queues, into FOLDER, and show what to do with it.

    1,085 messages in a dozen languages, written for this purpose and free of rights (CC0); 210 of them are for testing.
    """
    contents = {folder / name: (resources.files("textcls") / "demo" / name).read_bytes() for name in FILES}
    for path, content in contents.items():
        if path.exists() and path.read_bytes() != content:
            raise InputError(f"{path} exists and is a different file; name another FOLDER.")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        with atomic_write(path) as file:
            file.write(content)
    train, test = map(str, contents)
    click.echo(f"{train}, 875 rows, and {test}, 210 rows. {_NEXT.format(train=train, test=test)}")
