"""Where settings come from, and which are refused."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from textcls.cli import main
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
        (["--port", "70000"], "70000 is not in the range 0<=x<=65535."),
        (["--log-texts"], "--log-texts adds the texts to the line of each request: set --log-requests as well."),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_done(options: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["serve", "none.onnx", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
