"""The options that were found, as a settings file that `textcls train --config` reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from textcls._util.atomic_write import write_computed
from textcls.api.tuning import TuneReport
from textcls.display.text import percent
from textcls.errors import ConfigError

_FIRST_LINE: Final = "# Written by textcls tune."


def check(path: Path) -> None:
    """Refuse to replace settings written by someone else.

    Raises:
        ConfigError: there are some.
    """
    try:
        ours = path.read_text(encoding="utf-8", errors="replace").startswith(_FIRST_LINE)
    except OSError:
        return
    if not ours:
        raise ConfigError(f"{path} was not written by textcls tune, and is not replaced; choose another --output.")


def write(path: Path, report: TuneReport, reading: Mapping[str, Any]) -> None:
    """Write the settings to train with, all or nothing.

    Args:
        path: the file.
        report: what was found. Options that are not better than the defaults are written as comments.
        reading: how the rows were read: options of `textcls train` by their names there.
    """
    write_computed(path, content(report, reading).encode())


def content(report: TuneReport, reading: Mapping[str, Any]) -> str:
    """Return the content of the file; arguments as in `write`."""
    gain = report.gain
    lines = [
        _FIRST_LINE,
        f"# On {report.judged_rows:,} rows that the choice has not seen: {report.measured} {percent(gain.before, 2)} "
        f"by default, {percent(gain.after, 2)} tuned;",
        f"# the difference lies between {100 * gain.low:+.2f} and {100 * gain.high:+.2f} points.",
        "[train]",
    ]
    lines += [f"{_key(name)} = {_value(value)}" for name, value in {**reading, **report.fixed}.items()]
    if report.options and not report.is_better:
        lines.append("# Not better beyond chance; to train with them all the same, uncomment:")
    mark = "" if report.is_better else "# "
    lines += [f"{mark}{_key(name)} = {_value(value)}" for name, value in report.options.items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name.replace("_", "-")


def _value(value: Any) -> str:
    """Return a value in TOML, in the form the command line accepts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    # Its basic strings are written like those of JSON.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
