"""Options that are not given: flag before variable before file before default, and a file that is wrong is told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tests.command_line import run, write_rows
from textcls.cli import COMMANDS, LazyGroup, main, settings
from textcls.cli.annotate import annotate
from textcls.errors import ConfigError

ROWS = [("text", "label"), ("a", "x"), ("b", "y")]


@pytest.fixture
def train_call(train_call: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What training was called with, in a folder with some rows."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv", ROWS)
    return train_call


def test_a_flag_comes_before_a_variable_before_the_file_before_the_default(train_call: dict[str, Any]) -> None:
    def epochs(*options: str, **variables: str) -> Any:
        train_call.clear()
        result = run("train", "rows.csv", *options, **variables)
        assert "stopped." in result.stderr, result.output
        return train_call["config"].epochs

    assert epochs() is None
    Path("textcls.toml").write_text("[train]\nepochs = 3\n")
    told = "Note: textcls.toml in this folder sets epochs.\n"
    assert told in run("train", "rows.csv").stderr
    assert told not in run("train", "rows.csv", "--epochs", "2").stderr
    assert told not in run("train", "rows.csv", "--config", "textcls.toml").stderr
    assert told not in run("train", "rows.csv", "--quiet").stderr
    assert epochs() == 3
    assert epochs(TEXTCLS_TRAIN_EPOCHS="5") == 5
    assert epochs("--epochs", "7", TEXTCLS_TRAIN_EPOCHS="5") == 7
    assert epochs("--epochs", "7") == 7


def test_a_file_that_is_here_cannot_silence_what_is_said_of_it(train_call: dict[str, Any], model_path: Path) -> None:
    Path("textcls.toml").write_text("[train]\nquiet = true\n[serve]\nlog-texts = true\nport = -1\n")
    assert "Note: textcls.toml in this folder sets quiet.\n" in run("train", "rows.csv").stderr
    assert "quiet" not in run("train", "rows.csv", "--quiet").stderr
    Path("textcls.toml").write_text("[serve]\nlog-texts = true\n")
    said = run("serve", "missing.onnx").stderr
    assert "Note: textcls.toml in this folder sets log-texts.\n" in said
    Path("textcls.toml").write_text("[vectors.import]\nmost = 7\n")
    said = run("vectors", "import", "missing.txt", "-o", "x.vectors").stderr
    assert "Note: textcls.toml in this folder sets most.\n" in said


def test_the_file_is_that_of_the_option_or_the_variable_or_the_one_that_is_here(train_call: dict[str, Any]) -> None:
    for name, seed in (("textcls.toml", 1), ("variable.toml", 2), ("option.toml", 3)):
        Path(name).write_text(f"[train]\nseed = {seed}\n")
    run("train", "rows.csv")
    assert train_call["config"].seed == 1
    run("train", "rows.csv", TEXTCLS_CONFIG="variable.toml")
    assert train_call["config"].seed == 2
    run("train", "rows.csv", "--config", "option.toml", TEXTCLS_CONFIG="variable.toml")
    assert train_call["config"].seed == 3


def test_a_file_that_says_nothing_of_the_command_is_told_where_it_was_named(train_call: dict[str, Any]) -> None:
    Path("tuned.toml").write_text("[train]\nepochs = 3\n")
    said = "Note: tuned.toml sets nothing for textcls check: it has no [check].\n"
    assert said in run("check", "rows.csv", "--config", "tuned.toml").stderr
    assert said not in run("check", "rows.csv", TEXTCLS_CONFIG="tuned.toml").stderr
    assert said not in run("check", "rows.csv", "--config", "tuned.toml", "--quiet").stderr
    Path("empty.toml").write_text("[check]\n")
    assert "sets nothing" not in run("check", "rows.csv", "--config", "empty.toml").stderr
    assert "sets nothing" not in run("train", "rows.csv", "--config", "tuned.toml").stderr


def test_flags_lists_numbers_and_names_with_either_hyphen_are_read(train_call: dict[str, Any]) -> None:
    write_rows(Path("rows.csv"), [("title", "body", "label"), ("a", "b", "x"), ("c", "d", "y")])
    Path("textcls.toml").write_text(
        """
[train]
text-column = ["title", "body"]
class_weight = "balanced"
rationale-weight = 2.5
bigrams = false
quiet = true
ngrams = "2,4"
output = "out.onnx"

[predict]
top-k = 3
"""
    )
    result = run("train", "rows.csv")
    assert result.stderr.endswith(" and quiet.\nError: stopped.\n")
    config = train_call["config"]
    assert (config.class_weight, config.rationale_weight, config.bigrams) == ("balanced", 2.5, False)
    assert config.ngrams == (2, 4)
    assert train_call["source"].text_columns == ("title", "body")
    assert train_call["output"] == Path("out.onnx")
    Path("textcls.toml").write_text('[train]\ntext-column = "body"\n')
    run("train", "rows.csv")
    assert train_call["source"].text_columns == ("body",)
    run("train", "rows.csv", TEXTCLS_TRAIN_TEXT_COLUMN="title body")
    assert train_call["source"].text_columns == ("title", "body")


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        ("[train]\nepoch = 3", 2, "textcls.toml, [train]: there is no option 'epoch'; did you mean 'epochs'?"),
        ("[trian]\nepochs = 3", 2, "textcls.toml: there is no command 'trian'; did you mean 'train'?"),
        (
            "epochs = 3",
            2,
            "textcls.toml: there is no command 'epochs'; there are demo, suggest, label, check, train, train-many",
        ),
        ("train = 3", 2, "textcls.toml: 'train' is not a table; write [train], and its options below."),
        ("[train]\nepochs = 0", 2, "textcls.toml, [train] epochs: epochs must be at least 1, not 0."),
        ("[train]\nepochs = 2.5", 2, "textcls.toml, [train] epochs: epochs must be a whole number, not '2.5'."),
        ("[train]\nepochs = true", 2, "textcls.toml, [train] epochs: a string or a number is needed, not True."),
        ("[train]\nepochs = [3]", 2, "textcls.toml, [train] epochs: a string or a number is needed, not [3]."),
        ("[train]\nbigrams = 'no'", 2, "textcls.toml, [train] bigrams: true or false is needed, not 'no'."),
        (
            "[train]\nsize = 'big'",
            2,
            "[train] size: size must be one of tiny, small, default, full, not 'big'.",
        ),
        ("[train]\ntext-column = 3.0\nlabel-column = {}", 2, "[train] label-column: a string or a number is needed"),
        ("[train", 3, "textcls.toml is not valid TOML: "),
        (f"[train]\nepochs = {'9' * 4301}", 3, "textcls.toml is not valid TOML: "),
        (f"[train]\nepochs = {'[' * 2000}{']' * 2000}", 3, "textcls.toml is not valid TOML: its values are nested"),
        ("[train]\noutput = 'a\\u0000'".replace("'", '"'), 2, "[train] output: a value with a null character"),
    ],
)
def test_a_file_that_is_wrong_is_reported_and_nothing_is_done(
    train_call: dict[str, Any], content: str, code: int, said: str
) -> None:
    Path("textcls.toml").write_text(content)
    result = run("train", "rows.csv")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert train_call == {}


def test_an_option_that_is_given_twice_where_one_is_meant_is_refused(
    train_call: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = run("train", "rows.csv", "--label-column", "text", "--label-column", "label")
    assert twice.exit_code == 2
    assert "it is given 2 times; name the columns of the levels of a tree in one: 'group > job'" in twice.stderr
    monkeypatch.setenv("TEXTCLS_TRAIN_LABEL_COLUMN", "no such > column")
    assert "'no such'" in run("train", "rows.csv").stderr
    assert not train_call
    run("train", "rows.csv", "--label-column", "label")
    assert train_call["source"].labels == ["x", "y"]


@pytest.mark.parametrize(
    ("written", "prices"),
    [
        ("[0.25, 2]", ((0.25, 2.0),)),
        ("[[1, 2], [1, 3.5]]", ((1.0, 2.0), (1.0, 3.5))),
        ("0.25", None),
        ("[1]", None),
    ],
)
def test_an_option_of_two_values_is_a_list_or_a_list_of_such(
    written: str, prices: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "textcls.toml").write_text(f"[annotate]\nprice = {written}\n")
    context = click.Context(annotate)
    if prices is None:
        with pytest.raises(ConfigError, match=r"\[annotate\] price: .*(numbers is needed|values are required)"):
            settings.defaults(Path("textcls.toml"), context, ["annotate"])
        return
    found = settings.defaults(Path("textcls.toml"), context, ["annotate"])["prices"]
    (option,) = (one for one in annotate.params if one.name == "prices")
    assert option.process_value(context, found) == prices


def test_a_file_as_windows_writes_it_is_read(train_call: dict[str, Any]) -> None:
    Path("textcls.toml").write_text("[train]\nepochs = 3\n", encoding="utf-8-sig")
    run("train", "rows.csv")
    assert train_call["config"].epochs == 3


def test_an_empty_name_of_the_file_is_refused(train_call: dict[str, Any]) -> None:
    result = run("train", "rows.csv", "--config", "")
    assert (result.exit_code, train_call) == (2, {})
    assert result.stderr.startswith("Error: The name of the settings file is empty")


def test_a_file_that_is_not_there_is_reported(train_call: dict[str, Any]) -> None:
    result = run("train", "rows.csv", "--config", "no.toml")
    assert (result.exit_code, result.stderr) == (3, "Error: There is no settings file no.toml.\n")


def test_a_variable_that_is_wrong_is_named(train_call: dict[str, Any]) -> None:
    result = run("train", "rows.csv", TEXTCLS_TRAIN_EPOCHS="many")
    assert result.exit_code == 2
    assert "epochs must be a whole number, not 'many' (from the variable TEXTCLS_TRAIN_EPOCHS)." in result.stderr
    result = run("train", "rows.csv", TEXTCLS_TRAIN_EPOCHS="00")
    assert "epochs must be at least 1, not 0 (from the variable TEXTCLS_TRAIN_EPOCHS)." in result.stderr
    assert "variable" not in run("train", "rows.csv", "--epochs", "few", TEXTCLS_TRAIN_EPOCHS="2").stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_has_a_variable_and_a_key_of_its_own(name: str) -> None:
    group = main
    assert isinstance(group, LazyGroup)
    command = group.get_command(click.Context(group), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    variables = [option.envvar for option in options]
    assert len(set(variables)) == len(variables)
    assert "TEXTCLS_CONFIG" in variables
    for option in options:
        if option.name != "config":
            assert option.envvar == f"TEXTCLS_{name}_{settings.key_of(option)}".upper().replace("-", "_")
    assert "--config FILE" in run(name, "--help").stdout


def test_what_the_file_says_of_an_idle_option_of_inspect_is_no_mistake(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("textcls.toml").write_text("[inspect]\ntop = 3\njson = true\n")
    result = run("inspect", model_path)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["format_version"] == 1


def test_the_shell_is_given_what_completes_commands_and_options() -> None:
    code = "from textcls.cli import main; main(prog_name='textcls')"

    def complete(**variables: str) -> str:
        environment = {**os.environ, **variables}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        return done.stdout

    assert "complete -o nosort -F" in complete(_TEXTCLS_COMPLETE="zsh_source") + complete(
        _TEXTCLS_COMPLETE="bash_source"
    )
    words = {"_TEXTCLS_COMPLETE": "bash_complete"}
    assert complete(**words, COMP_WORDS="textcls tr", COMP_CWORD="1").split() == ["plain,train", "plain,train-many"]
    for option in ("serve --api-keys-file", "serve --runtime-dir", "train --vectors"):
        assert complete(**words, COMP_WORDS=f"textcls {option} ", COMP_CWORD="3").startswith("file,"), option
    found = complete(**words, COMP_WORDS="textcls train --ep", COMP_CWORD="2").split()
    assert found == ["plain,--epochs"]


def test_a_variable_of_no_option_is_told(train_call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTCLS_TRAIN_EPOCH", "3")
    note = "Note: TEXTCLS_TRAIN_EPOCH sets nothing: textcls train has no such option; did you mean "
    assert f"{note}TEXTCLS_TRAIN_EPOCHS?\n" in run("train", "rows.csv").stderr
    assert note not in run("train", "rows.csv", "--quiet").stderr
    given = {"TEXTCLS_TRAIN_BEST_PORT": "1", "TEXTCLS_TRAIN_DROP_SUSPECTS": "1"}
    said = run("train", "rows.csv", **given).stderr
    assert "Note: TEXTCLS_TRAIN_BEST_PORT sets nothing: textcls train has no such option.\n" in said
    assert "textcls train has no such option: leaving doubtful rows out made models of clean files worse" in said
    assert "Note: TEXTCLS_VECTORS_IMPORT_MOS sets nothing: textcls vectors has no such option; did you mean " in (
        run("vectors", "import", "missing.txt", "-o", "x.vectors", TEXTCLS_VECTORS_IMPORT_MOS="1").stderr
    )
    # Those of other commands, and what Kubernetes tells of a service that is called so.
    others = {"TEXTCLS_TRAIN_MANY_BY": "group", "TEXTCLS_TRAIN_SERVICE_HOST": "::1", "TEXTCLS_TRAIN_PORT_80_TCP": "x"}
    others["TEXTCLS_TRAIN_PORT"] = "tcp://10.0.0.1:80"
    monkeypatch.delenv("TEXTCLS_TRAIN_EPOCH")
    assert "sets nothing" not in run("train", "rows.csv", **others).stderr


@pytest.mark.parametrize("kind", ["a folder", "a link that leads nowhere"])
def test_what_is_called_as_the_settings_file_and_cannot_be_read_is_not_passed_over(
    train_call: dict[str, Any], kind: str
) -> None:
    if kind == "a folder":
        Path("textcls.toml").mkdir()
    else:
        Path("textcls.toml").symlink_to("nowhere")
    result = run("train", "rows.csv")
    assert result.exit_code == 3
    assert "ettings file textcls.toml" in result.stderr
