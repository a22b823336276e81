"""From the tokens of an answer to a probability for each label, worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls.annotation.probabilities import Token, label_of, of_tokens, of_truths, truths_of

LABELS = ("card lost", "card stolen", "refund")


def token(text: str | bytes, share: float = 1.0, *others: tuple[str | bytes, float]) -> Token:
    def data(of: str | bytes) -> bytes:
        return of.encode() if isinstance(of, str) else of

    return Token(data(text), math.log(share), [(data(other), math.log(of)) for other, of in others])


def test_what_labels_share_is_shared_and_where_they_part_each_has_its_own() -> None:
    tokens = [
        token('{"label":'), token(' "'), token("card", 0.8, ("card", 0.8), ("refund", 0.2)),
        token(" lost", 0.6, (" lost", 0.6), (" stolen", 0.4)), token('"}'),
    ]  # fmt: skip
    assert of_tokens("card lost", tokens, LABELS) == pytest.approx([0.48, 0.32, 0.2])


def test_a_beginning_that_several_labels_have_is_theirs_in_equal_parts() -> None:
    tokens = [token('{"label": "'), token("refund", 0.5, ("refund", 0.5), ("car", 0.3), ("xy", 0.2)), token('"}')]
    # What begins no label counts for nothing.
    assert of_tokens("refund", tokens, LABELS) == pytest.approx([0.15 / 0.8, 0.15 / 0.8, 0.5 / 0.8])


def test_the_quote_may_stand_in_a_token_with_the_name() -> None:
    tokens = [token("{"), token('"label": "re', 0.5, ('"label": "re', 0.5), ('"label": "ca', 0.5)), token('fund"}')]
    assert of_tokens("refund", tokens, LABELS) == pytest.approx([0.25, 0.25, 0.5])


def test_labels_that_json_escapes_are_found() -> None:
    labels = ('say "hi"', "say nothing")
    tokens = [
        token('{"label": "'),
        token("say ", 1.0),
        token('\\"', 0.9, ('\\"', 0.9), ("noth", 0.1)),
        token('hi\\""}'),
    ]
    assert of_tokens(labels[0], tokens, labels) == pytest.approx([0.9, 0.1])


def test_tokens_may_be_parts_of_a_character() -> None:
    one, other = "\u4e2d".encode(), "\u82f1".encode()
    tokens = [token('{"label":"'), token(one[:1], 0.6, (one[:1], 0.6), (other[:1], 0.4)), token(one[1:]), token('"}')]
    assert of_tokens("\u4e2d", tokens, ("\u4e2d", "\u82f1")) == pytest.approx([0.6, 0.4])


def test_json_may_write_a_letter_as_an_escape() -> None:
    tokens = [token('{"label":"'), token("h", 0.6, ("h", 0.6), ("\\u", 0.4)), token('iver"}')]
    assert of_tokens("hiver", tokens, ("\u00e9t\u00e9", "hiver")) == pytest.approx([0.4, 0.6])


def test_the_other_token_may_hold_the_quote_and_more() -> None:
    tokens = [token('{"label":'), token('"', 0.3, ('"', 0.3), ('"refund', 0.7)), token("card lost"), token('"}')]
    assert of_tokens("card lost", tokens, LABELS) == pytest.approx([0.3, 0, 0.7])


def test_what_is_said_before_the_answer_does_not_count() -> None:
    thought = [token('the "label": "card'), token(" stolen", 0.5), token('" perhaps; ')]
    tokens = [*thought, token('{"label":\t\r\n"'), token("card", 0.6, ("card", 0.6), ("refund", 0.4)), token(' lost"}')]
    assert of_tokens("card lost", tokens, LABELS) == pytest.approx([0.6, 0, 0.4])


def test_a_label_that_another_begins_with_is_meant_where_its_whole_name_is_a_token() -> None:
    tokens = [token('{"label":"'), token("billing", 0.6, ("billing", 0.6), ("bill", 0.4)), token('"}')]
    assert of_tokens("billing", tokens, ("bill", "billing")) == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ('{"label": "refund"}', "refund"),
        ('{"label": "other"}', None),
        ('{"label": ["refund"]}', None),
        ('{"label": "refund", "why": "so"}', "refund"),
        ('```json\n{"label": "refund"}\n```', "refund"),
        ("[" * 200_000, None),
        ("refund", None),
        ("", None),
        ('["refund"]', None),
    ],
)
def test_only_an_object_that_has_one_of_the_labels_is_an_answer(content: str, label: str | None) -> None:
    assert label_of(content, LABELS) == label


@given(st.data())
def test_probabilities_are_such_whatever_tokens_say(data: st.DataObject) -> None:
    text = st.text(alphabet='card lostenrfu"{}:\\ ', max_size=8).map(str.encode)
    logprob = st.floats(-30, 1000)
    tokens = data.draw(st.lists(st.builds(Token, text, logprob, st.lists(st.tuples(text, logprob), max_size=3))))
    label = data.draw(st.sampled_from(LABELS))
    found = of_tokens(label, [token('{"label":"'), *tokens], LABELS)
    assert sum(found) == pytest.approx(1)
    assert all(0 <= one <= 1 for one in found)


def test_of_several_labels_each_is_likely_as_true_is_beside_false() -> None:
    tokens = [
        token('{"card lost":'), token(" true", 0.6, (" true", 0.6), (" false", 0.2), ("null", 0.2)),
        token(', "card stolen": f', 0.9, (', "card stolen": f', 0.9), (', "card stolen": t', 0.1)), token("alse"),
        token(', "refund"'), token(":"), token("true", 1.0), token("}"),
    ]  # fmt: skip
    truths = {"card lost": True, "card stolen": False, "refund": True}
    assert of_truths(truths, tokens) == pytest.approx([0.75, 0.1, 1.0])
    assert of_truths(truths, []) == [1.0, 0.0, 1.0]


def test_a_truth_is_that_of_the_whole_name() -> None:
    tokens = [token('{"a": '), token("true", 0.7, ("true", 0.7), ("false", 0.3)), token(', "a\\"b": false}')]
    assert of_truths({"a": True, 'a"b': False}, tokens) == pytest.approx([0.7, 0.0])


@pytest.mark.parametrize(
    "content", ['{"a": true}', '{"a": true, "b": 1}', '{"a": true, "b": null}', "[true, false]", "", "a, b"]
)
def test_what_does_not_say_yes_or_no_to_each_label_is_no_answer(content: str) -> None:
    assert truths_of(content, ["a", "b"]) is None
    assert truths_of('{"a": true, "b": false, "c": 3}', ["a", "b"]) == {"a": True, "b": False}
