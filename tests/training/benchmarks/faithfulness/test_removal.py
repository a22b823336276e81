import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithfulness.removal import MASK, REMOVALS, Removal, keep, read_part, remove
from textcls.errors import ConfigError
from textcls.model import tokenizer

TEXT = "It isn't good, 東京!"
SPANS = tuple(tokenizer.token_spans(TEXT))  # it isn ' t good , 東 京 !


def test_deleting_turns_tokens_into_spaces_so_that_neighbours_meet() -> None:
    assert remove(TEXT, SPANS, [0, 3]) == "   isn'  good, 東京!"
    assert tokenizer.tokenize(remove(TEXT, SPANS, [2])) == ["it", "isn", "t", "good", ",", "東", "京", "!"]


def test_masking_puts_one_sign_in_the_place_of_each_token() -> None:
    assert remove(TEXT, SPANS, [0, 4], "mask") == f"{MASK} isn't {MASK}, 東京!"


def test_keeping_removes_all_others() -> None:
    assert keep(TEXT, SPANS, [4]).split() == ["good"]
    assert tokenizer.tokenize(keep(TEXT, SPANS, [4], "mask")) == [MASK] * 4 + ["good"] + [MASK] * 4


def test_what_is_behind_the_limit_is_cut_off_and_cannot_slide_in() -> None:
    text, spans = read_part("one two  three four", 2)
    assert (text, spans) == ("one two", ((0, 3), (4, 7)))
    assert tokenizer.tokenize(remove(text, spans, [0])) == ["two"]


def test_a_text_without_a_token_has_nothing_to_read() -> None:
    assert read_part(" \n", 5) == ("", ())
    assert remove("", (), []) == ""


def test_an_unknown_way_of_removal_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Unknown removal 'pad'; choose delete or mask\."):
        remove("a", ((0, 1),), [0], "pad")  # type: ignore[arg-type]


@given(st.text(max_size=30), st.sampled_from(REMOVALS))
def test_removal_of_nothing_changes_nothing(text: str, removal: Removal) -> None:
    spans = tuple(tokenizer.token_spans(text))
    assert remove(text, spans, [], removal) == text
    assert keep(text, spans, range(len(spans)), removal) == text


@given(st.text(max_size=20), st.data())
def test_what_is_not_removed_stays_a_token(text: str, data: st.DataObject) -> None:
    spans = tuple(tokenizer.token_spans(text))
    gone = data.draw(st.sets(st.integers(0, max(0, len(spans) - 1)))) & set(range(len(spans)))
    tokens = tokenizer.tokenize(text)
    left = [token for i, token in enumerate(tokens) if i not in gone]
    assert tokenizer.tokenize(remove(text, spans, gone)) == left
    masked = [MASK if i in gone else token for i, token in enumerate(tokens)]
    assert tokenizer.tokenize(remove(text, spans, gone, "mask")) == masked
