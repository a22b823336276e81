"""Who is asked what, and what becomes of the answers."""

import threading
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import pytest

from tests.labelling.files import Open
from textcls.errors import InputError, NotFoundError, TextclsError
from textcls.evaluation.data_quality.label_audit import SuspectRow
from textcls.labelling.answers import Annotation
from textcls.labelling.given import GivenAnswers
from textcls.labelling.learner import Learned
from textcls.labelling.session import LEASE, Session

TEXTS = [f"text number {i}" for i in range(40)]
Begin = Callable[..., Session]


@pytest.fixture
def begin(tmp_path: Path, opened: Open) -> Begin:
    """Begin a session on `TEXTS`, or go on with one."""

    def started(texts: Sequence[str] = TEXTS, *, several: bool = False, **given: object) -> Session:
        file = opened(tmp_path / "labels.jsonl", several=several)
        return Session(texts, ["a", "b"], file, **given)  # type: ignore[arg-type]

    return started


def row_of(session: Session, who: str) -> int:
    found = session.next(who)
    assert found is not None
    return int(found["row"])


def test_two_people_never_have_the_same_text_and_a_reload_gives_the_same(begin: Begin) -> None:
    session = begin(start=[3, 4])
    assert row_of(session, "one") == row_of(session, "one") == 3
    assert row_of(session, "two") == 4
    with pytest.raises(InputError, match="Somebody else is labelling this text"):
        session.answer("two", 3, ["a"])


def test_a_session_that_begins_has_learned_nothing_and_is_not_learning(begin: Begin) -> None:
    state = begin().state()
    assert (state["learning"], state["learned_from"], state["failed"]) == (False, 0, "")


def test_many_people_at_once_answer_each_text_once(begin: Begin) -> None:
    session = begin()

    def work(who: str) -> None:
        while (found := session.next(who)) is not None:
            session.answer(who, found["row"], ["a"], who)

    threads = [threading.Thread(target=work, args=(f"person {i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.row for answer in session.file.answers if answer.row is not None) == list(range(40))


def test_a_text_that_nobody_answers_is_asked_of_the_next_after_a_while(begin: Begin) -> None:
    now = [0.0]
    session = begin(start=[3], now=lambda: now[0])
    assert row_of(session, "one") == 3
    assert row_of(session, "two") != 3
    now[0] = LEASE + 1
    assert row_of(session, "three") == 3


def test_every_fifth_text_is_a_random_one(begin: Begin) -> None:
    session = begin(start=list(range(40)))
    chosen = []
    for _ in range(20):
        found = session.next("one")
        assert found is not None
        chosen.append(found["chosen"])
        session.answer("one", found["row"], ["a"])
    assert [i for i, why in enumerate(chosen, 1) if why == "random"] == [5, 10, 15, 20]


def test_an_answer_is_taken_back_and_given_anew(begin: Begin) -> None:
    session = begin(start=[3, 4])
    session.answer("one", row_of(session, "one"), ["a"])
    session.skip("one", row_of(session, "one"))
    assert row_of(session, "one") not in (3, 4)
    session.undo("one")
    assert row_of(session, "one") == 4
    session.undo("one")
    assert row_of(session, "one") == 3
    assert session.file.answers == []
    session.answer("one", 3, ["b"])
    assert [(answer.row, answer.labels) for answer in session.file.answers] == [(3, ("b",))]
    session.undo("one")
    with pytest.raises(NotFoundError, match="nothing to take back"):
        session.undo("one")


def test_nobody_takes_back_the_answer_of_another(begin: Begin) -> None:
    session = begin()
    session.answer("one", row_of(session, "one"), ["a"])
    with pytest.raises(NotFoundError):
        session.undo("two")
    assert len(session.file.answers) == 1


def test_an_answer_that_is_sent_again_is_saved_once(begin: Begin) -> None:
    session = begin()
    row = row_of(session, "one")
    session.answer("one", row, ["a"])
    session.answer("one", row, ["a"])
    assert len(session.file.answers) == 1
    with pytest.raises(InputError, match="in the meantime"):
        session.answer("one", row, ["b"])


def test_a_label_can_be_new(begin: Begin) -> None:
    session = begin()
    session.answer("one", row_of(session, "one"), [" c "])
    assert session.state()["labels"][-1] == {"label": "c", "rows": 1}


@pytest.mark.parametrize("labels", [[], ["a", "b"], [""], ["x" * 2000], ["\ud800"]])
def test_what_cannot_be_the_label_of_a_text_is_refused(begin: Begin, labels: list[str]) -> None:
    session = begin()
    with pytest.raises(TextclsError):
        session.answer("one", row_of(session, "one"), labels)
    with pytest.raises(NotFoundError):
        session.answer("one", 400, ["a"])
    assert session.file.answers == []


def test_several_labels_or_none_are_an_answer_where_they_may_be(begin: Begin) -> None:
    session = begin(several=True)
    session.answer("one", row_of(session, "one"), ["a", "b"])
    session.answer("one", row_of(session, "one"), [])
    assert [answer.labels for answer in session.file.answers] == [("a", "b"), ()]


def test_what_was_answered_yesterday_is_not_asked_today(begin: Begin) -> None:
    session = begin()
    done = []
    for _ in range(3):
        done.append(row_of(session, "one"))
        session.answer("one", done[-1], ["c"])
    session.file.close()
    session = begin()
    assert session.labels == ["a", "b", "c"]
    asked = []
    while (found := session.next("one")) is not None:
        asked.append(found["row"])
        session.answer("one", found["row"], ["a"])
    assert sorted(done + asked) == list(range(40))


def test_near_copies_are_asked_once_and_copies_of_earlier_answers_are_told_with_their_labels(begin: Begin) -> None:
    session = begin(["One text", "one  text!", "another"])
    assert session.state()["left"] == 2
    session.file.append(Annotation("ANOTHER", ("b",)))
    session.file.append(Annotation("another.", ("a",)))
    session.file.close()
    assert begin(["One text", "another"]).state()["left"] == 1


def test_suspects_are_asked_for_in_their_order_and_only_their_lines_change(begin: Begin) -> None:
    texts = ["one", "two", "Two", "three"]
    suspects = [
        SuspectRow(1, "two", "a", "b", 0.1, 0.8, ("two",), 1),
        SuspectRow(3, "three", "a", "b", 0.2, 0.7, (), 0),
    ]
    session = begin(texts, suspects=suspects)
    beside = [{"shop": f"shop {row}", "opened": date(2024, 5, row + 1)} for row in range(4)]
    given = (Annotation(text, ("a",), row, "given", beside=beside[row]) for row, text in enumerate(texts))
    session.file.exchange(given)
    session.file.close()
    session = begin(texts, suspects=suspects)
    first = session.next("one")
    assert first is not None
    assert (first["row"], first["labels"], first["copies"]) == (1, ["a"], [{"label": "a", "rows": 1}])
    assert first["proposal"]["labels"][0] == {"label": "b", "score": 0.8}
    session.answer("one", 1, ["b"])
    assert row_of(session, "one") == 3
    session.answer("one", 3, ["a"])
    assert session.next("one") is None
    assert [(answer.labels[0], answer.chosen) for answer in session.file.answers] == [
        ("a", "given"),
        ("b", "suspect"),
        ("a", "given"),
        ("a", "suspect"),
    ]
    session.undo("one")
    session.undo("one")
    assert [answer.labels[0] for answer in session.file.answers] == ["a"] * 4
    assert [answer.beside for answer in session.file.answers] == [
        {"shop": f"shop {row}", "opened": f"2024-05-0{row + 1}"} for row in range(4)
    ]
    assert row_of(session, "one") == 1


def test_suspects_of_several_labels_say_what_is_to_be_added_and_to_go(begin: Begin) -> None:
    suspects = [SuspectRow(1, "two", ("a", "c"), ("a", "b"), 0.1, 0.8, ("two",), 0)]
    session = begin(["one", "two"], several=True, suspects=suspects)
    session.file.exchange(Annotation(text, ("a", "c"), row, "given") for row, text in enumerate(["one", "two"]))
    session.file.close()
    session = begin(["one", "two"], several=True, suspects=suspects)
    first = session.next("one")
    assert first is not None
    assert (first["labels"], first["answered"]) == (["a", "c"], False)
    assert first["proposal"] == {
        "by": "audit",
        "labels": [{"label": "b", "score": 0.8}, {"label": "c", "score": 0.1}],
        "words": ["two"],
        "added": ["b"],
        "gone": ["c"],
        "assigned": ["a", "b"],
        "score": 0.8,
    }
    session.answer("one", 1, ["a", "b"])
    assert session.next("one") is None
    assert [answer.labels for answer in session.file.answers] == [("a", "c"), ("a", "b")]


class Learner:
    """Says what it is told to say, after some answers."""

    def __init__(self, model: Path) -> None:
        self.model, self.asked, self.fails = model, [], False
        self.done = threading.Event()

    asked: list[int]

    def learn(self, labels: Sequence[str], answers: Sequence[Annotation]) -> Learned:
        self.asked.append(len(answers))
        if self.fails:
            self.done.set()
            raise InputError("Nothing can be learned.")
        if len(answers) < 5:
            return Learned(len(answers), None, [7, 8], hints={7: ["b", "a"]})
        self.done.set()
        return Learned(len(answers), self.model, [30, 31], {answer.row or 0: True for answer in answers})

    def close(self) -> None:
        pass


def test_a_model_that_has_learned_proposes_with_its_reasons_and_asks_for_its_texts(
    begin: Begin, model_path: Path
) -> None:
    learner = Learner(model_path)
    session = begin(learner=learner)
    thread = threading.Thread(target=session.learn_forever)
    thread.start()
    try:
        for _ in range(200):
            if session.state()["learned_from"] or learner.done.wait(0.02):
                break
            if session._learned.hints and (found := session.next("one")) is not None:
                session.answer("one", found["row"], ["a"])
        session.skip("one", row_of(session, "one"))
        while not session.state()["learned_from"]:
            assert not learner.done.wait(0.01) or True
        found = session.next("one")
        while found is not None and found["chosen"] == "random":
            session.answer("one", found["row"], ["a"])
            found = session.next("one")
        assert found is not None
        assert (found["row"], found["chosen"]) == (30, "model")
        proposal = found["proposal"]
        assert "".join(proposal["pieces"]) == found["text"]
        assert len(proposal["pieces"]) == 2 * len(proposal["known"]) + 1
        assert {len(values) for values in proposal["evidence"].values()} == {len(proposal["known"])}
    finally:
        session.close()
        thread.join()


def test_a_training_that_fails_is_told_and_labelling_goes_on(begin: Begin, model_path: Path) -> None:
    learner = Learner(model_path)
    learner.fails = True
    session = begin(learner=learner)
    thread = threading.Thread(target=session.learn_forever)
    thread.start()
    try:
        assert learner.done.wait(10)
        session.answer("one", row_of(session, "one"), ["a"])
        for _ in range(500):
            if session.state()["failed"]:
                break
            threading.Event().wait(0.01)
        assert session.state()["failed"] == "Nothing can be learned."
    finally:
        session.close()
        thread.join()


def test_answers_that_texts_bring_along_are_proposed_and_the_doubtful_ones_asked_first(begin: Begin) -> None:
    answers: list[dict[str, float]] = [{"a": 0.9, "c": 0.1} for _ in TEXTS]
    answers[7], answers[8] = {"c": 0.52, "a": 0.48}, {}
    session = begin(given=GivenAnswers.of(answers, several=False))
    assert [one["label"] for one in session.state()["labels"]] == ["a", "b", "c"]
    for row, first in ((8, "a"), (7, "c")):
        found = session.next("one")
        assert found is not None
        assert found["row"] == row
        assert (found["proposal"]["by"], found["proposal"]["labels"][0]["label"]) == ("answers", first)
        session.answer("one", row, ["b"])


def test_it_is_told_how_often_the_answers_that_came_along_are_those_of_people(begin: Begin) -> None:
    session = begin(given=GivenAnswers.of([{"a": 0.9, "b": 0.1} for _ in TEXTS], several=False))
    assert session.state()["agreement"] is None
    while (found := session.next("one")) is not None:
        session.answer("one", found["row"], ["a" if found["row"] % 4 else "b"])
    agreement = session.state()["agreement"]
    assert (agreement["right"], agreement["rows"]) == (30, 40)
    assert agreement["low"] < 0.75 < agreement["high"]


def test_of_several_labels_those_that_are_likelier_than_not_are_proposed() -> None:
    given = GivenAnswers.of([{"a": 0.9, "b": 0.6, "c": 0.2}, {"a": 0.1}], several=True)
    assert given.proposal(0)["assigned"] == ["a", "b"]
    assert [sorted(given.answered(row)) for row in (0, 1)] == [["a", "b"], []]
    assert given.order() == [0, 1]
