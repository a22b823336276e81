"""`python -m textcls_training.ablation` is `textcls ablate`."""

import sys

import click

from textcls.errors import TextclsError, exit_code
from textcls_training.ablation.cli import ablate

if __name__ == "__main__":
    try:
        ablate()
    except TextclsError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(exit_code(error))
