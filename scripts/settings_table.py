"""Write deploy/settings.md from the settings themselves: python scripts/settings_table.py"""

from pathlib import Path
from typing import Any

from textcls._util.options import options_of
from textcls.server.settings import ENVIRONMENT, Settings

PATH = Path(__file__).parent.parent / "deploy" / "settings.md"
HEAD = """# Settings of `textcls serve`

Each can be given as a flag, as an environment variable, or in the table `[serve]` of a TOML file (`--config FILE`, else
`TEXTCLS_CONFIG`, else `textcls.toml` in the working folder), under the name in the first column; a flag counts for more
than a variable, a variable for more than the file. Flags have `-` for `_`. What is `true` is switched off with `--no-`
before the name.

The models are the arguments, the variable `TEXTCLS_SERVE_MODELS` (separated by spaces) or `models` in the file. Keys
are never flags, since command lines are public: they are read from files, or from `TEXTCLS_API_KEYS` and
`TEXTCLS_ADMIN_KEY`.

```toml
[serve]
models = ["tickets@2026-11=tickets.onnx", "urgency=urgency.onnx"]
host = "0.0.0.0"
api_keys_file = "/run/secrets/api_keys"
workers = 2
```

| name | variable | default | what it does |
|---|---|---|---|
"""


def shown(default: Any) -> str:
    """A default as it would be written in the file."""
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default in (None, ()) else f"{default}"


def document() -> str:
    rows = [
        f"| `{name}` | `{ENVIRONMENT}{name.upper()}` | {shown(each.default)} | {each.help} |"
        for name, each in options_of(Settings).items()
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
