"""Commands of textcls under a memory limit, for attacks that need no service."""

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Final

from attacking import bench as benches
from attacking.limits import limited
from attacking.watching import Figures, Memory
from attacking.wire import Seen, last_words, within
from running import command, environment

# Of commands, which are not service: training takes more.
LIMIT_MIB: Final = 2 * benches.LIMIT_MIB
_SECONDS: Final = 120.0


def run(
    bench: benches.Bench,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = _SECONDS,
) -> tuple[Figures, Seen, float]:
    """Run a command of textcls.

    Args:
        bench: whose code.
        arguments: of the command.
        variables: of its environment, besides those of this process.
        folder: that it runs in.
        seconds: after which it is said to hang, and killed.

    Returns:
        Figures, of which only the memory and the death are known; exit code and last words; seconds.
    """
    begun = monotonic()
    with limited(LIMIT_MIB) as limit, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*limit.prefix, *command(*arguments)],
            env=environment(bench.tree) | dict(variables or {}),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        memory = Memory(process.pid, limit)
        ended = within(seconds, lambda: process.poll() is not None)
        process.kill()
        process.wait()
        figures = Figures(grown_mb=round(memory.stop(), 1))
        if memory.killed or limit.kills():
            figures.died = "killed at the memory limit"
        errors.seek(0)
        said = errors.read()
    seen = Seen({"exit": process.returncode, "last_words": last_words(said)})
    if not ended:
        seen.broken.append(f"not done in {seconds:g} s")
    elif process.returncode < 0 and not figures.died:
        seen.broken.append(f"ended by signal {-process.returncode}")
    seen.broken += ["a traceback"] if "Traceback" in said else []
    return figures, seen, round(monotonic() - begun, 1)
