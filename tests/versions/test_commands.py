"""`textcls publish` and `textcls versions`: what they say, keep, and refuse."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_line import fail, run, succeed, write_rows
from tests.service.reloading import LABELS
from tests.versions.conftest import Model
from textcls import Classifier, __version__
from textcls.versions.folder import Registry


def listed(registry: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(succeed("versions", registry, "--json"))
    return found


def test_the_whole_way_forth_and_back(model: Model, registry: Path) -> None:
    first, second = model("tickets.onnx"), model("new.onnx")
    assert re.fullmatch(
        rf"tickets, version 1: 0\.17 MB -> {registry}/1\nVersion 1 is promoted\.\n",
        succeed("publish", first, registry, "--promote"),
    )
    assert (
        succeed("publish", second, registry, "--by", "Ann", "--note", "rows of November").splitlines()[0]
        == f"tickets, version 2: 0.17 MB -> {registry}/2"
    )
    table = succeed("versions", registry)
    assert "tickets: 2 versions in" in table
    assert re.search(r"2 +\S+ \S+ +32\.7% +7 +0\.17 +Ann +rows of November", table)
    assert re.search(r"1  promoted ", table)
    said = succeed("versions", registry, "--promote", "2", "--by", "Ann")
    assert said == "Version 2 is promoted; until now it was version 1.\n"
    said = succeed("versions", registry, "--rollback")
    assert said == "Version 1 is promoted again; until now it was version 2.\n"
    found = listed(registry)
    assert (found["name"], found["promoted"]) == ("tickets", 1)
    history = [{**each, "time": ""} for each in found["history"]]  # type: ignore[attr-defined]
    assert history == [
        {"version": 1, "time": ""},
        {"version": 2, "time": "", "by": "Ann"},
        {"version": 1, "time": "", "rolled_back_from": 2},
    ]
    assert fail(3, "versions", registry, "--rollback").endswith("before version 1, so there is no way back.\n")


def test_a_roll_back_passes_over_a_version_that_was_removed(model: Model, registry: Path) -> None:
    for i in range(3):
        succeed("publish", model(f"{i}.onnx"), registry, "--name", "tickets", "--promote")
    shutil.rmtree(registry / "2")
    said = succeed("versions", registry, "--rollback").splitlines()
    assert said[0] == "Version 1 is promoted again; until now it was version 3."
    assert said[1] == f"Version 2 was passed over: {registry} has no version 2; it has versions 1, 3."
    assert "so there is no way back." in fail(3, "versions", registry, "--rollback")


def test_a_version_says_what_it_is_and_nothing_of_the_machine(model: Model, registry: Path, model_path: Path) -> None:
    path = model("tickets.onnx")
    succeed("publish", path, registry)
    version = json.loads((registry / "1" / "version.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", version.pop("created"))
    digest = version.pop("sha256")
    assert len(digest) == 64
    accuracy = Classifier.load(path).info.training["held_out_accuracy"]
    assert version == {
        "version": 1,
        "bytes": path.stat().st_size,
        "textcls": __version__,
        "labels": 7,
        "held_out": {"held_out_accuracy": accuracy},
    }
    assert (registry / "1" / "model.onnx").read_bytes() == path.read_bytes()
    head, _, body = (registry / "1" / "README.md").read_text().removeprefix("---\n").partition("\n---\n")
    assert yaml.safe_load(head)["pipeline_tag"] == "text-classification"
    assert body.startswith("\n# tickets\n")
    assert digest in body
    assert f"answered with accuracy {accuracy:.1%} on 150 rows" in body


def test_the_same_bytes_are_the_same_version_and_can_be_promoted(model: Model, registry: Path) -> None:
    path = model("tickets.onnx")
    succeed("publish", path, registry)
    said = succeed("publish", path, registry, "--promote")
    assert re.fullmatch(
        rf"{path} is tickets, version 1, published \S+Z; nothing was added\.\nVersion 1 is promoted\.\n", said
    )
    assert succeed("publish", path, registry, "--promote").endswith("Version 1 is promoted already.\n")
    found = json.loads(succeed("publish", path, registry, "--json"))
    assert (found["version"], found["new"], found["promoted"]) == (1, False, True)
    assert len(listed(registry)["history"]) == 1  # type: ignore[arg-type]


def test_with_rows_there_is_a_report_on_them_and_the_card_has_its_figures(
    model: Model, registry: Path, tmp_path: Path
) -> None:
    rows = [("my card was charged twice", "billing"), ("where is my parcel", "shipping")] * 15
    data = write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows])
    path = model("new.onnx")
    succeed("publish", path, registry, "--name", "tickets", "--report", data)
    report = json.loads((registry / "1" / "report.json").read_text())
    assert (report["rows"], report["model"]["name"]) == (30, "model.onnx")
    assert "Report on tickets" in (registry / "1" / "report.html").read_text()
    card = (registry / "1" / "README.md").read_text()
    head = yaml.safe_load(card.removeprefix("---\n").partition("\n---\n")[0])
    assert head["model-index"][0]["results"][0]["metrics"][0]["value"] == pytest.approx(report["accuracy"], abs=1e-4)
    assert "30 rows of heldout" in card


def test_a_model_of_several_labels_is_published_with_its_own_figures(
    several_labels_path: Path, registry: Path, tmp_path: Path
) -> None:
    succeed("publish", several_labels_path, registry)
    assert "answer.assigned" in (registry / "1" / "README.md").read_text()
    assert "F1 " in succeed("versions", registry)
    rows = [("my card was charged twice", "billing"), ("my card, and where is my parcel", "billing;shipping")] * 15
    data = write_rows(tmp_path / "heldout.csv", [("text", "label"), *rows])
    (registry / "1").rename(tmp_path / "taken away")
    assert "has one label" in fail(3, "publish", several_labels_path, registry, "--report", data)
    assert listed(registry)["versions"] == []
    succeed("publish", several_labels_path, registry, "--report", data, "--label-separator", ";")
    (version,) = registry.glob("[0-9]*")
    report = json.loads((version / "report.json").read_text())
    head = yaml.safe_load((version / "README.md").read_text().removeprefix("---\n").partition("\n---\n")[0])
    values = {one["name"]: one["value"] for one in head["model-index"][0]["results"][0]["metrics"]}
    assert values["micro-F1"] == pytest.approx(report["micro_f1"], abs=1e-4)
    assert "Labels too many" in (version / "report.html").read_text()


def test_a_registry_has_one_name(model: Model, registry: Path) -> None:
    path = model("my model.onnx")
    assert "give it one with --name" in fail(2, "publish", path, registry)
    assert not registry.exists()
    succeed("publish", path, registry, "--name", "tickets")
    other = model("new.onnx")
    assert "is the registry of 'tickets', not of 'mails'" in fail(2, "publish", other, registry, "--name", "mails")
    assert succeed("publish", other, registry).startswith("tickets, version 2: ")


def test_a_model_that_cannot_be_loaded_is_not_published(registry: Path, tmp_path: Path, model: Model) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    assert "bad.onnx is not a model" in fail(4, "publish", tmp_path / "bad.onnx", registry, "--promote")
    model("wrong.onnx", temperature=9.0)
    assert "wrong.onnx is damaged" in fail(4, "publish", tmp_path / "wrong.onnx", registry)
    assert "There is no model file" in fail(4, "publish", tmp_path / "none.onnx", registry)
    assert not registry.exists()


def test_a_lost_version_with_none_before_it_is_to_be_published_again(model: Model, registry: Path) -> None:
    succeed("publish", model("tickets.onnx"), registry, "--promote")
    (registry / "1" / "model.onnx").unlink()
    assert "cannot be used: publish its file again with --promote." in run("versions", registry).stderr
    succeed("publish", model("tickets.onnx"), registry)
    assert "cannot be used: promote another." in run("versions", registry).stderr
    succeed("versions", registry, "--promote", "2")
    assert "cannot be used" not in run("versions", registry).stderr


def test_a_damaged_version_is_shown_and_neither_promoted_nor_rolled_back_to(model: Model, registry: Path) -> None:
    succeed("publish", model("tickets.onnx"), registry, "--promote")
    succeed("publish", model("new.onnx"), registry, "--promote")
    path = registry / "1" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    before = (registry / "registry.json").read_bytes()
    assert "Version 1 cannot be used: " in succeed("versions", registry)
    for asked in (["--promote", "1"], ["--rollback"]):
        said = fail(4, "versions", registry, *asked)
        assert f"{path} has the SHA-256 " in said
        assert "it is damaged or was changed; promote another version" in said
    assert (registry / "registry.json").read_bytes() == before
    path.write_bytes(b"short")
    assert "Version 1 cannot be used: " in succeed("versions", registry)
    (registry / "1" / "version.json").write_text("{}")
    assert "version.json is damaged (sha256 is not a text)" in succeed("versions", registry)
    (registry / "1" / "version.json").unlink()
    assert "it has no version.json" in fail(4, "versions", registry, "--promote", "1")
    assert "problem" in listed(registry)["versions"][0]  # type: ignore[index]
    shutil.copy(registry / "2" / "README.md", registry / "2" / "model.onnx")
    result = run("versions", registry)
    assert result.exit_code == 4
    assert "Version 2 cannot be used: " in result.stdout
    assert "Error: Version 2 is promoted, and cannot be used: publish its file again" in result.stderr
    assert run("versions", registry, "--json").exit_code == 4


def test_a_registry_that_is_named_as_a_model_is_called_one(model: Model, registry: Path) -> None:
    succeed("publish", model("tickets.onnx"), registry, "--promote")
    said = fail(4, "explain", registry, "my card was charged")
    assert f"{registry} is a registry: textcls versions {registry} says which version is promoted" in said


def test_of_two_that_make_a_registry_at_once_both_publish(
    model: Model, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, other = Registry.make, model("other.onnx")

    def made_by_another(folder: Path, name: str, *, exactly: bool = True) -> Registry:
        make(folder, "other")
        return make(folder, name, exactly=exactly)

    monkeypatch.setattr(Registry, "make", made_by_another)
    assert "other, version 1" in succeed("publish", model("tickets.onnx"), registry)
    assert "# other" in (registry / "1" / "README.md").read_text()
    assert "is the registry of 'other', not of 'mine'" in fail(2, "publish", other, registry, "--name", "mine")


def test_a_promoted_version_whose_folder_was_removed_is_told(model: Model, registry: Path) -> None:
    succeed("publish", model("tickets.onnx"), registry, "--promote")
    succeed("publish", model("new.onnx"), registry)
    shutil.rmtree(registry / "1")
    result = run("versions", registry)
    assert result.exit_code == 4
    assert "Version 1 is promoted, and its folder is not there." in result.stdout
    assert "has no version 1; it has version 2." in fail(3, "versions", registry, "--promote", "1")


def test_what_cannot_be_done_is_refused_in_a_sentence(model: Model, registry: Path, tmp_path: Path) -> None:
    path = model("tickets.onnx")
    assert "There is no folder" in fail(3, "versions", registry)
    (registry.parent / "model.onnx").touch()
    assert "is a file, and a registry is a folder" in fail(3, "versions", registry.parent / "model.onnx")
    assert "is not a registry: it has no registry.json and holds" in fail(3, "publish", path, tmp_path)
    assert "is a file, and a registry is a folder" in fail(3, "publish", path, path)
    result = run("publish", path, "s3://models/registry")
    assert result.exit_code == 2
    assert "s3://models/registry is a URL, and a registry is a folder of this machine" in result.stderr
    succeed("publish", path, registry)
    assert "Nothing is promoted yet" in fail(3, "versions", registry, "--rollback")
    assert "has no version 7; it has version 1." in fail(3, "versions", registry, "--promote", "7")
    succeed("versions", registry, "--promote", "1")
    assert "done one at a time" in fail(2, "versions", registry, "--promote", "1", "--rollback")
    assert "There is no option --shadow any more" in run("versions", registry, "--shadow", "1").stderr
    assert "--by says who promotes" in fail(2, "versions", registry, "--by", "Ann")
    assert "--note has 10,001 characters" in fail(2, "publish", path, registry, "--note", "x" * 10_001)
    assert "/proc/registry cannot be written to" in fail(6, "publish", path, "/proc/registry")


def test_other_labels_are_allowed_and_told(model: Model, registry: Path) -> None:
    succeed("publish", model("tickets.onnx"), registry, "--promote")
    succeed("publish", model("new.onnx", labels=["accounts", *LABELS[1:]]), registry)
    note = "Note: version 2 knows other labels than version 1: 1 added 'accounts', 1 removed 'account'.\n"
    assert succeed("versions", registry, "--promote", "2").endswith(note)
    succeed("publish", model("titled.onnx", labels=["accounts", *LABELS[1:]], text_columns=["title", "body"]), registry)
    note = "Note: version 3 reads other columns than version 2: 2 added 'title' 'body', 0 removed.\n"
    assert succeed("versions", registry, "--promote", "3").endswith(note)


def test_publishing_needs_no_extra_and_predicting_nothing_of_it(model: Model, registry: Path, tmp_path: Path) -> None:
    path = model("tickets.onnx")
    rows = write_rows(tmp_path / "rows.csv", [("text",), ("my card",)])
    code = """
import sys
blocked = {"torch", "onnx", "numba", "sklearn", "scipy", "fastapi", "uvicorn", "pydantic", "starlette", "pyarrow"}
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hook())
from textcls.cli import main
main(["predict", sys.argv[1], sys.argv[3], "--output", sys.argv[3] + ".answers.csv"], standalone_mode=False)
assert not [name for name in sys.modules if name.startswith(("textcls.versions", "textcls.server"))]
main(["publish", sys.argv[1], sys.argv[2], "--promote"], standalone_mode=False)
main(["versions", sys.argv[2]], standalone_mode=False)
"""
    done = subprocess.run([sys.executable, "-c", code, path, registry, rows], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Version 1 is promoted." in done.stdout
