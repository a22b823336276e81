"""Texts made of labelled ones: each once, each made of what it says, and the same again."""

from hypothesis import given, settings
from hypothesis import strategies as st

from textcls.model.tokenizer import tokenize
from textcls_training.data.split import hash_of
from textcls_training.distillation.made_up import made_up

WORDS = ("where", "is", "my", "parcel", "?", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "$5", "re-sent", " ", "\n")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=6)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 40), st.integers(0, 3))
def test_texts_are_made_of_their_sources_and_are_none_of_those_that_are_known(
    texts: list[str], known: list[str], number: int, seed: int
) -> None:
    found = made_up(texts, number, seed, known)
    assert len(found) <= number
    hashes = [hash_of(one.text) for one in found]
    assert len({*hashes, *map(hash_of, [*texts, *known])}) == len(hashes) + len({*map(hash_of, [*texts, *known])})
    for text, (first, second) in found:
        tokens = tokenize(text)
        assert tokens
        assert {*tokens} <= {*tokenize(texts[first]), *tokenize(texts[second])}
    assert found == made_up(texts, number, seed, known)


def test_there_are_as_many_as_are_wanted() -> None:
    texts = ["where is my parcel, it should be here", "my card was charged twice for one order"]
    assert len(made_up(texts, 500, 0)) == 500
    assert made_up(["one", ""], 5, 0) == []
