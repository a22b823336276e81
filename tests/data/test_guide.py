"""The guides docs/data.md and docs/checking.md say what the program does: commands, names, findings, columns."""

import re
import shlex
from pathlib import Path

import pytest

from textcls.cli import LazyGroup, main
from textcls.data import columns, formats, writing
from textcls.evaluation.data_quality import findings, label_findings
from textcls.jobs.batch.answer_columns import AnswerColumns

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("data.md", "checking.md"))
SHOWN = [line[2:] for line in GUIDE.splitlines() if line.startswith("$ ")]
TABLED = re.findall(r"`(textcls (?:train|evaluate|predict)[^`]*\.onnx[^`]*)`", GUIDE)


@pytest.mark.parametrize("line", [*SHOWN, *TABLED])
def test_a_command_line_is_understood(line: str) -> None:
    words = shlex.split(line)
    words = words[words.index("textcls") + 1 :]
    group = main
    assert isinstance(group, LazyGroup)
    context = group.make_context("textcls", list(words))
    command = group.get_command(context, words[0])
    assert command is not None
    # Below its parent: a command keeps the options of help with which it is first asked.
    command.make_context(words[0], words[1:], parent=context)


def test_every_format_is_told_with_its_names() -> None:
    table = GUIDE.split("## Formats")[1].split("Each may be")[0]
    told = dict(re.findall(r"^\| [^|]+ \| ([^|]+) \|.*\| yes \| (yes|no) \|$", table, re.MULTILINE))
    named = {name for names in told for name in re.findall(r"`(\.\w+)`", names)}
    assert named == {*formats._SUFFIXES, ".txt"}
    written = {
        formats.by_name(Path(f"x{re.findall('`(.*?)`', names)[0]}")) for names, yes in told.items() if yes == "yes"
    }
    assert written == set(writing.WRITTEN)


def test_every_finding_is_told() -> None:
    code = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (findings, label_findings))
    made = re.findall(r'Finding\(\s*"([a-z-]+)"', code)
    told = re.findall(r"`([a-z-]+)`", GUIDE.split("| finding |")[1].split("Findings are")[0])
    assert {kind for kind in told if kind != "--valid"} >= {*made, "valid-copies", "valid-near-copies"}


def test_every_column_of_an_answer_is_told() -> None:
    for several in (False, True):
        assert all(f"`{name}`" in GUIDE for name in AnswerColumns(explain=True, top_k=1, several=several).names)


def test_the_names_of_columns_that_are_told_are_known() -> None:
    told = re.search(r"well-known names are used \((.*?)\)", GUIDE, re.DOTALL)
    assert told is not None
    texts, labels = (re.findall(r"`(\w+)`", part) for part in told[1].split(" and `class`"))
    assert set(texts) <= columns.TEXT_NAMES
    assert {*labels, "class"} <= columns._LABELS
