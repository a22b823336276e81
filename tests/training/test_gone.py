"""What there was once: who still asks for it is told in a sentence why it is gone."""

from pathlib import Path

import pytest

from tests.command_line import run
from textcls.errors import ConfigError
from textcls_training.config.settings import from_options


@pytest.mark.parametrize(
    ("command", "option", "why"),
    [
        ("train", "--workers", "sharing the steps of one training never"),
        ("train", "--engine", "sharing the steps"),
        ("train", "--shards", "sharing the steps"),
        ("train", "--drop-suspects", "leaving doubtful rows out made models of clean files worse"),
        ("tune", "--shards", "sharing the steps"),
        ("pretrain", "--mixing", "vectors from guessed words were no better"),
    ],
)
def test_an_option_that_is_gone_is_refused_with_the_reason(
    sample_path: Path, command: str, option: str, why: str
) -> None:
    result = run(command, sample_path, option, "2")
    assert result.exit_code == 2
    assert f"There is no option {option} any more: {why}" in result.output


@pytest.mark.parametrize("command", ["ablate", "explain-benchmark"])
def test_a_command_that_is_gone_is_refused_with_the_place_where_it_is_now(command: str) -> None:
    result = run(command, "tickets.csv")
    assert result.exit_code == 2
    assert f"There is no command '{command}' any more: it is a study" in result.output


def test_a_settings_file_that_has_one_is_refused_with_the_reason(sample_path: Path, tmp_path: Path) -> None:
    (tmp_path / "textcls.toml").write_text("[train]\nshards = 8\n")
    result = run("train", sample_path, "--config", tmp_path / "textcls.toml")
    assert result.exit_code != 0
    assert "[train]: there is no option 'shards' any more" in result.output


def test_python_is_told_the_same() -> None:
    with pytest.raises(ConfigError, match="no option 'workers' any more: sharing the steps"):
        from_options({"workers": 2})
