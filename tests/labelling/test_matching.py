"""Which answer is of which text, and what copies of a text are labelled."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.labelling.files import Open
from textcls.evaluation.data_quality.label_audit import SuspectRow
from textcls.labelling.answers import Annotation
from textcls.labelling.matching import labels_of_copies, matched
from textcls.labelling.session import Session

TEXTS = st.lists(st.sampled_from(["one", "two", "One!"]), max_size=8)
ROWS = st.one_of(st.none(), st.integers(0, 9))


@given(TEXTS, st.lists(st.tuples(st.sampled_from(["one", "two", "other"]), ROWS), max_size=8))
def test_an_answer_is_of_its_row_or_else_of_the_first_of_its_text_that_has_none(
    texts: list[str], given_answers: list[tuple[str, int | None]]
) -> None:
    answers = [Annotation(text, ("a",), row) for text, row in given_answers]
    expected: dict[int, Annotation] = {}
    for answer in answers:
        same = [row for row, text in enumerate(texts) if text == answer.text]
        free = [row for row in same if row not in expected]
        row = answer.row if answer.row in same else next(iter(free), None)
        if row is not None:
            expected[row] = answer
    assert {row: id(answer) for row, answer in matched(texts, answers).items()} == {
        row: id(answer) for row, answer in expected.items()
    }


def test_however_answers_come_and_go_copies_and_lines_are_those_of_the_answers(tmp_path: Path, opened: Open) -> None:
    draw, texts = random.Random(), ["one", "One!", "two", "three", "two"]
    file = opened(tmp_path / "labels.jsonl", several=False)
    file.exchange(Annotation(text, ("a",), row, "given") for row, text in enumerate(texts))
    suspects = [SuspectRow(row, text, "a", "b", 0.1, 0.8, (), 0) for row, text in enumerate(texts)]
    session = Session(texts, ["a", "b"], file, suspects=suspects)
    for _ in range(40):
        shown = session.next("me")
        if shown is None or (session.state()["answers"] and draw.random() < 0.4):
            session.undo("me")
        else:
            session.answer("me", shown["row"], [draw.choice("ab")])
        counted = {name: +labels for name, labels in session._copies.items() if +labels}
        assert counted == labels_of_copies(file.answers)
        assert file.path.read_bytes() == b"".join(answer.line(several=False) for answer in file.answers)
