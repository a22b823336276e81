"""What a registry says of itself: promoted, before, and what is not a registry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from textcls import InputError
from textcls.versions.record import Promotion, State, Version

EMPTY = State("tickets")
# A promotion of a version, or 0 for a roll-back.
STEPS = st.lists(st.integers(0, 5), max_size=20)


def played(steps: list[int]) -> tuple[State, list[int]]:
    """The state after some steps, and what stands: a stack, of which a roll-back takes the last."""
    state, standing = EMPTY, list[int]()
    for step in steps:
        if step:
            state = state.promote(step, "2026-11-22T00:00:00Z", None)
            if not standing or standing[-1] != step:
                standing.append(step)
        elif len(standing) > 1:
            state = state.roll_back("2026-11-22T00:00:00Z", "Ann")
            standing.pop()
        else:
            with pytest.raises(InputError, match=r"Nothing (is|was) promoted"):
                state.roll_back("", None)
    return state, standing


@given(STEPS)
def test_each_roll_back_goes_one_promotion_further_back(steps: list[int]) -> None:
    state, standing = played(steps)
    assert state.promoted == (standing[-1] if standing else None)
    assert state.before == standing[-2::-1]


def test_a_roll_back_passes_over_what_cannot_be_used() -> None:
    state = EMPTY
    for version in (1, 2, 3, 4):
        state = state.promote(version, "", None)
    state = state.roll_back("", None, lambda version: version not in (2, 3))
    assert (state.promoted, state.before) == (1, [])
    state = state.promote(5, "", None)
    with pytest.raises(InputError, match="Nothing that can be used was promoted before version 5"):
        state.roll_back("", None, lambda version: version != 1)
    assert State.from_json(state.to_json()) == state


@given(STEPS)
def test_a_state_is_what_was_written(steps: list[int]) -> None:
    state = played(steps)[0]
    assert State.from_json(state.to_json()) == state


def test_a_version_that_is_promoted_already_leaves_no_second_entry() -> None:
    state = EMPTY.promote(1, "", "Ann")
    assert state.promote(1, "", "Bob") is state


GOOD = {"registry_format": 1, "name": "tickets", "history": []}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"registry_format": 2}, "it is of a newer format"),
        ({"registry_format": "1"}, "registry_format is not a number"),
        ({"name": "a b"}, "its name is none"),
        ({"name": None}, "name is not a text"),
        ({"history": {}}, "there is no history"),
        ({"history": [[]]}, "it is not an object"),
        ({"history": [{"version": 1}]}, "time is not a text"),
        ({"history": [{"version": 1, "time": "", "rolled_back_from": 2}]}, "rolls back what was never promoted"),
    ],
)
def test_what_is_no_state_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        State.from_json({**GOOD, **change})


def test_a_version_is_what_was_written_and_has_a_hash() -> None:
    version = Version(
        version=3, sha256="a" * 64, bytes=5, created="now", textcls="0.1.0", labels=2, held_out={}, note="x\ny"
    )
    assert Version.from_json(version.to_json()) == version
    assert "by" not in version.to_json()
    with pytest.raises(ValueError, match="sha256 is not a SHA-256"):
        Version.from_json({**version.to_json(), "sha256": "abc"})
    kept = Version.from_json({**version.to_json(), "held_out": {"held_out_accuracy": 0.5, "else": 1, "x": "y"}})
    assert kept.held_out == {"held_out_accuracy": 0.5}


def test_an_entry_of_the_history_says_who_only_if_somebody_did() -> None:
    assert Promotion(1, "now").to_json() == {"version": 1, "time": "now"}
