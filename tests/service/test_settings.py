"""Where settings come from, and which are refused."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from textcls.cli import main
from textcls.errors import ConfigError
from textcls.server.settings import Settings


def test_flags_count_for_more_than_the_environment_and_that_for_more_than_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "textcls.toml"
    path.write_text(
        '[serve]\nmodels = ["c.onnx", "d.onnx"]\nmax_inputs = 3\nmax_queue = 4\nmax_characters = 5\ncors_origin = ["https://a.example"]\n'
    )
    seen: list[Settings] = []
    named: list[tuple[str, ...]] = []

    def serve(models: tuple[str, ...], settings: Settings, *, ready: object) -> None:
        named.append(models)
        seen.append(settings)

    monkeypatch.setattr("textcls.server.processes.run.serve", serve)
    monkeypatch.setenv("TEXTCLS_SERVE_MAX_QUEUE", "40")
    monkeypatch.setenv("TEXTCLS_SERVE_MAX_CHARACTERS", "50")
    assert CliRunner().invoke(main, ["serve", "--config", str(path)]).exit_code == 0
    monkeypatch.setenv("TEXTCLS_SERVE_MODELS", "a=a.onnx b=b.onnx")
    done = CliRunner().invoke(main, ["serve", "--config", str(path), "--max-characters", "500"])
    assert done.exit_code == 0, done.output
    assert named == [("c.onnx", "d.onnx"), ("a=a.onnx", "b=b.onnx")]
    settings = seen[1]
    assert (settings.max_inputs, settings.max_queue, settings.max_characters) == (3, 40, 500)
    assert settings.cors_origin == ("https://a.example",)
    assert settings.workers == 1


def test_a_setting_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "textcls.toml"
    path.write_text("[serve]\nmax_input = 3\n")
    done = CliRunner().invoke(main, ["serve", "a.onnx", "--config", str(path)])
    assert (done.exit_code, done.stderr) == (
        2,
        f"Error: {path}, [serve]: there is no option 'max_input'; did you mean 'max-inputs'?\n",
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "70000"], "port must be 0 to 65535, not 70000."),
        (["--log-texts"], "--log-texts adds the texts to the line of each request: set --log-requests as well."),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_done(options: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["serve", "none.onnx", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threads": 0}, "threads must be at least 1, not 0."),
        ({"max_inputs": "x"}, "max_inputs must be a whole number, not 'x'."),
        ({"request_seconds": -1}, "request_seconds must be a finite number from 0.01 to 1e+09, not -1."),
        ({"request_seconds": float("nan")}, "request_seconds must be a finite number from 0.01 to 1e+09, not nan."),
        ({"load_seconds": 1e10}, "load_seconds must be a finite number from 0.01 to 1e+06, not 10000000000.0."),
        ({"threads": -(10**5000)}, "threads must be a number of 64 bits."),
        ({"api_keys_file": 3}, "api_keys_file must be the name of a file, not 3."),
        ({"allowed_host": "example.org"}, "allowed_host must be a list, not 'example.org'."),
        ({"runtime_dir": "a\0b"}, r"runtime_dir must be the name of a file, not 'a\x00b'."),
        ({"cors_origin": (3,)}, "cors_origin must be a name or a path, not 3."),
        ({"log_level": "loud"}, "log_level must be one of info, warning, error, not 'loud'."),
        ({"docs": "yes"}, "docs must be True or False, not 'yes'."),
        ({"host": ""}, "host must be a name or a path, not ''."),
    ],
)
def test_settings_given_in_python_are_checked_as_those_of_a_command_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Settings(**given)
    assert str(refused.value) == said


def test_settings_given_in_python_are_brought_into_their_plain_form() -> None:
    settings = Settings(api_keys_file="keys.txt", allowed_host=["example.org"], request_seconds=1)  # type: ignore[arg-type]
    assert (settings.api_keys_file, settings.allowed_host) == (Path("keys.txt"), ("example.org",))


def test_what_a_file_switches_on_a_flag_switches_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr("textcls.server.processes.run.serve", lambda models, settings, ready: seen.append(settings))
    (tmp_path / "textcls.toml").write_text("[serve]\nlog_requests = true\n")
    for given in ([], ["--no-log-requests"]):
        done = CliRunner().invoke(main, ["serve", "a.onnx", "--config", str(tmp_path / "textcls.toml"), *given])
        assert done.exit_code == 0, done.output
    assert [each.log_requests for each in seen] == [True, False]
