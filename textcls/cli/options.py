"""Arguments and options that several commands share."""

from pathlib import Path

import click

PATH = click.Path(path_type=Path)

model_argument = click.argument("model", type=PATH)
threshold_option = click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Answer `abstain` when the best score is below this.  [default: the model's own, if it has one]",
)
text_column_option = click.option(
    "--text-column",
    "text_columns",
    multiple=True,
    metavar="NAME",
    help="Column of the text; give it several times to join columns.  [default: those of the training]",
)
html_option = click.option("--html", type=PATH, metavar="FILE", help="Write a page that needs nothing but a browser.")
