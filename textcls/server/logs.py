"""Logs as JSON lines on standard error, which never hold a text unless asked for."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

# What a record of `logging` has of its own; anything else was given as `extra`.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}

REQUESTS: Final = "textcls.requests"


class JsonLines(logging.Formatter):
    """One JSON object a record: time, level, logger, message, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line. Of an error only the places are told: its text may hold the caller's."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["where"] = places(record.exc_info[1])
        return json.dumps(line, default=str)


def places(error: BaseException | None) -> list[str]:
    """Return where an error went through, innermost last, without any value."""
    found, trace = [], error.__traceback__ if error is not None else None
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return found


def configure(level: str) -> None:
    """Send everything of at least `level` to standard error, and requests if they are logged at all."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger(REQUESTS).setLevel(logging.INFO)
