"""The tree of errors, its one table, and what a person reads when a part of the package is not installed."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import textcls
from tests.command_line import called
from textcls import errors
from textcls._util.optional_dependencies import WEIGHT_OF_EXTRA
from textcls.errors import MissingExtraError, TextclsError, exit_code, http_status

# error: (exit code, HTTP status)
EXPECTED = {
    "TextclsError": (1, 500),
    "InputError": (3, 422),
    "TooLargeError": (3, 413),
    "ConfigError": (2, 422),
    "ArtifactError": (4, 503),
    "MissingExtraError": (5, 501),
    "NotFoundError": (3, 404),
    "SurroundingsError": (6, 503),
}

# Run first in a fresh process: what is named in it cannot be imported.
_BLOCKING = """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hook())
"""
MAIN = "from textcls.cli import main; main(prog_name='textcls')"


def tree(kind: type[TextclsError]) -> set[type[TextclsError]]:
    # Only those of the package: tests may make their own.
    own = {kind} if kind.__module__ == "textcls.errors" else set()
    return own.union(*(tree(child) for child in kind.__subclasses__()))


def made(kind: type[TextclsError]) -> TextclsError:
    return kind("what", "package", "extra", "weight") if issubclass(kind, MissingExtraError) else kind("text")


def without(packages: str) -> str:
    """What makes a process one in which `packages`, separated by commas, are not installed."""
    return _BLOCKING.format(packages=packages.split(","))


def run_without(packages: str, *args: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", without(packages) + MAIN, *map(str, args)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


# The table


def test_every_error_of_the_package_has_its_own_line_in_the_table() -> None:
    assert {kind for kind, _, _ in errors._TABLE} == tree(TextclsError)


def test_exit_codes_and_http_statuses_stay_as_they_are() -> None:
    found = {kind.__name__: (exit_code(made(kind)), http_status(made(kind))) for kind in tree(TextclsError)}
    assert found == EXPECTED


def test_an_error_of_a_caller_inherits_from_the_nearest_line() -> None:
    class Special(errors.TooLargeError):
        pass

    assert (exit_code(Special("text")), http_status(Special("text"))) == EXPECTED["TooLargeError"]


def test_every_error_can_be_imported_from_the_package() -> None:
    for kind in tree(TextclsError):
        assert getattr(textcls, kind.__name__) is kind


def test_a_missing_extra_is_reported_with_the_command_to_type() -> None:
    assert str(MissingExtraError("textcls serve", "fastapi", "serve", "30 MB")) == (
        "textcls serve needs the package 'fastapi', which is not installed (about 30 MB); "
        'run: pip install "textcls[serve]"'
    )


@pytest.mark.parametrize("kind", sorted(tree(TextclsError), key=str))
def test_an_error_comes_back_from_another_process_as_it_was(kind: type[TextclsError]) -> None:
    error = made(kind)
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (kind, str(error), vars(error))


# Without an extra


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("onnx", "train new.csv", "train"),
        ("numba", "train --help", "train"),
        ("scipy", "train new.csv --mixing none -o x.onnx", "train"),
        ("fastapi", "serve model.onnx --port 0", "serve"),
        ("uvicorn", "serve model.onnx --port 0", "serve"),
    ],
)
def test_a_command_without_its_extra_names_the_package_and_the_command_to_type(
    tmp_path: Path, package: str, command: str, extra: str
) -> None:
    name = command.split()[0]
    done = run_without(package, *command.split(), folder=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == (
        f"Error: textcls {name} needs the package {package!r}, which is not installed "
        f'(about {WEIGHT_OF_EXTRA[extra]}); run: pip install "textcls[{extra}]"\n'
    )
    assert list(tmp_path.iterdir()) == []


NEEDS_PYTORCH = {
    "train new.csv --mixing lambda": "Training with mixing 'lambda'",
    "train new.csv --head prototypes": "Training with prototypes",
    "train new.csv --impl reference": "Training with the reference trainer",
    "train new.csv --device cuda": "Training with a GPU",
    "pretrain new.csv --objective mutual-information -o new.onnx": "Pretraining by the objective mutual-information",
}


def test_what_needs_pytorch_says_which_option_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("text,label\n" + "the parcel is late,a\na wrong charge,b\n" * 30)
    done = called(*map(str.split, NEEDS_PYTORCH), folder=tmp_path, first=without("torch"))
    for (code, output, said), who in zip(done, NEEDS_PYTORCH.values(), strict=True):
        assert (code, output) == (5, "")
        assert said.splitlines()[-1] == (
            f"Error: {who} needs the package 'torch', which is not installed "
            '(about 1.2 GB by the CPU build of PyTorch, 6 GB with CUDA); run: pip install "textcls[torch]"'
        )
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


def test_without_pytorch_models_are_trained_whatever_their_labels(tmp_path: Path) -> None:
    rows = [f"word{i} of {j},{i}" for i in range(140) for j in range(3)]
    (tmp_path / "new.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    for more in ((), ("--vectors", "english", "--state", "state")):
        done = run_without("torch", "train", "new.csv", "--epochs", "1", *more, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    found = textcls.Classifier.load(tmp_path / "new.onnx")
    assert len(found.labels) == 140
    assert "torch" not in found.info.training["versions"]


def test_models_of_one_label_are_scored_without_scikit_learn_and_others_name_the_command_to_type(
    tmp_path: Path, model_path: Path, several_labels_path: Path
) -> None:
    (tmp_path / "data.csv").write_text("text,label\nrefund,returns\n")
    done = run_without("sklearn,scipy", "evaluate", model_path, "data.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 row ")
    done = run_without("sklearn", "evaluate", several_labels_path, "data.csv", folder=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("Error: ")
    assert "'sklearn', which is not installed (about 440 MB); run: pip install \"textcls[train]\"\n" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_without_any_extra_lists_all_commands_and_says_what_is_missing(tmp_path: Path) -> None:
    done = run_without("torch,onnx,numba,scipy,sklearn,fastapi,uvicorn,pydantic,starlette", "--help", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for command in ("train", "evaluate", "predict", "explain", "inspect", "serve"):
        assert f"\n  {command} " in done.stdout
    said = " ".join(done.stdout.split())
    assert 'Train a classifier on labelled files. (needs pip install "textcls[train]")' in said
    assert said.count("(needs pip install") == 6  # those that do nothing without


def test_a_package_that_no_extra_brings_is_not_hidden(tmp_path: Path) -> None:
    done = run_without("rich", "inspect", "model.onnx", folder=tmp_path)
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'rich" in done.stderr
