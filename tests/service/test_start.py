"""A service that cannot start says why in one sentence."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.service.processes import MAIN, PATIENCE, command, ended
from textcls import SurroundingsError
from textcls.cli import main
from textcls.server.http.listening import listen


def test_a_port_in_use_is_one_sentence(model_path: Path) -> None:
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        result = CliRunner().invoke(main, ["serve", str(model_path), "--port", str(port)])
    assert result.exit_code == 6
    assert result.stdout == ""
    assert result.stderr == (
        f"Error: Port {port} of 127.0.0.1 is already in use; "
        "stop the other program or choose another with --port (0 takes a free one).\n"
    )


@pytest.mark.parametrize(("host", "message"), [("192.0.2.1", "cannot be listened on"), ("no host", "is unknown")])
def test_an_address_that_is_not_here_is_one_sentence(host: str, message: str) -> None:
    with pytest.raises(SurroundingsError, match=message):
        listen(host, 0)


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["serve", str(tmp_path / "none.onnx")])
    assert (result.exit_code, result.stderr) == (4, f"Error: There is no model file {tmp_path / 'none.onnx'}.\n")


def test_a_service_whose_workers_cannot_start_fails(model_path: Path) -> None:
    code = f"""
from textcls.server.processes.supervisor import Supervisor
start = Supervisor.init_processes
def without_models(self):
    for path in self._store.folder.glob("*.onnx"):
        path.unlink()
    start(self)
Supervisor.init_processes = without_models
{MAIN}
"""
    status, said = ended(model_path, "--workers", "2", code=code)
    assert status == 6
    assert "The worker cannot start: " in said
    assert said.endswith("Error: A worker could not start, and so would none that replaces it: its log says why.\n")


@pytest.mark.parametrize("count", ["1", "2"])
def test_what_every_worker_would_fail_of_is_one_sentence(model_path: Path, count: str) -> None:
    code = f"import sys; sys.modules['opentelemetry.exporter.otlp.proto.http.trace_exporter'] = None; {MAIN}"
    status, said = ended(model_path, "--workers", count, "--tracing", code=code)
    assert (status, said.count("\n")) == (5, 1)
    assert said.startswith("Error: --tracing needs the package 'opentelemetry', ")


def printed(code: str) -> str:
    """What Python prints, in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_without_the_extra_the_command_says_what_to_type() -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; from click.testing import CliRunner; from textcls.cli import main\n"
        "helped, run = (CliRunner().invoke(main, ['serve', *a]) for a in (['--help'], ['model.onnx']))\n"
        "print(helped.exit_code, run.exit_code, run.stderr)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert said.startswith("0 5 Error: textcls serve needs the package 'fastapi'")
    assert 'pip install "textcls[serve]"' in said


def test_importing_textcls_does_not_import_fastapi() -> None:
    code = "import sys, textcls; print('fastapi' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert said == "False\n"


def limited(soft: int, hard: int) -> str:
    """What runs the service where so many files may be open."""
    return f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); {MAIN}"


REFUSING = """
import resource
set_limit = resource.setrlimit
set_limit(resource.RLIMIT_NOFILE, (100, 4000))
def refused(*_):
    raise ValueError('not allowed to raise maximum limit')
resource.setrlimit = refused
"""


def test_a_system_that_lets_no_limit_be_raised_is_told_of(model_path: Path) -> None:
    with command(model_path, "--max-connections", "300", code=f"{REFUSING}{MAIN}", afresh=True) as running:
        running.process.terminate()
        _, said = running.process.communicate()
    assert "up to 400 files may be open, and here only 100: new connections wait before that" in said


@pytest.mark.parametrize(("hard", "found"), [(4000, 400), (200, 200)])
def test_as_many_files_as_connections_need_may_be_open_if_the_system_lets_them(
    model_path: Path, hard: int, found: int
) -> None:
    code = limited(100, hard)
    with command(model_path, "--max-connections", "300", code=code, afresh=True) as running:
        assert resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE) == (found, hard)
        running.process.terminate()
        _, said = running.process.communicate()
    told = "With max_connections 300 up to 400 files may be open, and here only 200: new connections wait before that"
    assert (told in said) == (found < 400)


def test_where_hardly_a_file_may_be_open_no_service_starts(model_path: Path) -> None:
    message = "Error: Only 40 files may be open here, and a service needs 64: raise ulimit -n.\n"
    assert ended(model_path, code=limited(30, 40)) == (6, message)
