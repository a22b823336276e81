"""Learning beside the page of `textcls label`."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from textcls import Classifier
from textcls.data import read_labelled
from textcls.errors import SurroundingsError
from textcls.labelling.answers import Annotation
from textcls_training.labelling.learn import Learning
from textcls_training.labelling.process import LearningProcess

PARENT = """
import sys
from textcls.labelling.answers import Annotation
from textcls_training.labelling.process import LearningProcess
if __name__ == "__main__":
    learner = LearningProcess(["one text", "another text"], several=False)
    learner.learn(["a", "b"], [])
    print(learner._process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def tickets(sample_path: Path) -> tuple[list[str], list[str]]:
    found = read_labelled(sample_path)
    return list(found.texts), list(found.labels)


def answers_to(rows: range, tickets: tuple[list[str], list[str]]) -> list[Annotation]:
    texts, labels = tickets
    return [Annotation(texts[row], (labels[row],), row) for row in rows]


def test_before_there_are_enough_answers_names_are_hints_and_the_choice_has_no_model(
    tmp_path: Path, tickets: tuple[list[str], list[str]]
) -> None:
    english = [text for text, label in zip(*tickets, strict=True) if text.isascii()][:100]
    found = Learning(english, tmp_path, several=False).learn(["billing", "returns"], [])
    assert found.model is None
    assert len(set(found.order)) == len(found.order) == 100
    charged = next(row for row, text in enumerate(english) if "invoice" in text.lower())
    assert found.hints[charged][0] == "billing"


def test_a_model_is_made_of_the_answers_and_held_out_answers_say_how_good_it_is(
    tmp_path: Path, tickets: tuple[list[str], list[str]]
) -> None:
    learning = Learning(tickets[0][:300], tmp_path, several=False)
    labels = sorted(set(tickets[1]))
    learning.learn(labels, answers_to(range(60), tickets))
    found = learning.learn(labels, answers_to(range(120), tickets))
    assert found.model is not None
    assert set(Classifier.load(found.model).labels) == set(labels)
    assert not set(found.order) & set(range(120))
    # A model that had seen them would be right on nearly all.
    assert set(found.held_out) <= set(range(120))
    assert len(found.held_out) > 100
    assert 0.2 < sum(found.held_out.values()) / len(found.held_out) < 0.8
    assert found.changed is not None
    assert 0 < found.changed < 1


def test_what_a_model_has_said_is_kept_until_there_are_four_times_as_many_answers(
    tmp_path: Path, tickets: tuple[list[str], list[str]]
) -> None:
    learning = Learning(tickets[0][:300], tmp_path, several=False)
    for answers in (20, 40, 81):
        learning.learn(sorted(set(tickets[1])), answers_to(range(answers), tickets))
    assert list(learning._said) == [40, 81]


def test_of_several_labels_held_out_answers_are_right_if_all_are(
    tmp_path: Path, tickets: tuple[list[str], list[str]]
) -> None:
    texts = [f"{word} and {other}" for word in ("red", "green") for other in map(str, range(30))]
    answers = [
        Annotation(text, tuple(word for word in ("red", "green") if word in text), row)
        for row, text in enumerate(texts)
    ]
    found = Learning(texts, tmp_path, several=True).learn(["red", "green"], answers)
    assert sum(found.held_out.values()) > 0.9 * len(found.held_out) > 0


def test_a_process_that_dies_is_told_and_the_next_one_learns(tickets: tuple[list[str], list[str]]) -> None:
    learner = LearningProcess(tickets[0][:50], several=False)
    try:
        assert learner.learn(["a", "b"], []).order
        assert learner._process is not None
        os.kill(learner._process.pid or 0, signal.SIGKILL)
        with pytest.raises(SurroundingsError, match="ended unexpectedly"):
            learner.learn(["a", "b"], [])
        assert learner.learn(["a", "b"], []).order
    finally:
        learner.close()


def test_a_process_that_cannot_be_started_is_told_and_started_the_next_time(
    tmp_path: Path, tickets: tuple[list[str], list[str]]
) -> None:
    learner = LearningProcess(tickets[0][:50], several=False)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
            with pytest.raises(SurroundingsError, match="could not be started"):
                learner.learn(["a", "b"], [])

            def fail(*_: object) -> None:
                raise OSError(errno.EAGAIN, "no process")

            patch.undo()
            patch.setattr("multiprocessing.context.SpawnProcess._Popen", staticmethod(fail))
            with pytest.raises(SurroundingsError, match="could not be started"):
                learner.learn(["a", "b"], [])
        assert learner.learn(["a", "b"], []).order
    finally:
        learner.close()


def test_the_process_is_not_waited_for_to_the_end_of_a_training_and_leaves_no_folder() -> None:
    learner = LearningProcess(["one text", "another text"], several=False)
    assert learner.learn(["a", "b"], []).order
    assert learner._process is not None
    assert learner._folder is not None
    folder = learner._folder
    assert folder.is_dir()
    os.kill(learner._process.pid or 0, signal.SIGSTOP)
    learner.close()
    assert not folder.exists()


def test_the_process_ends_with_the_one_that_asked_even_if_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    for _ in range(600):
        try:
            if Path(f"/proc/{child}/stat").read_text(encoding="utf-8").split()[2] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    pytest.fail("it is still there")
