import numpy as np

from faithfulness.robustness import CHANGES, SYNONYMS, duplicate, synonym, typo
from textcls.model import tokenizer


def spans(text: str) -> list[tuple[int, int]]:
    return list(tokenizer.token_spans(text))


def test_a_typo_swaps_two_neighbouring_letters_of_one_long_word() -> None:
    generator = np.random.default_rng(0)
    text = "it is abcd 1234"
    for _ in range(20):
        assert typo(text, spans(text), generator) in {"it is bacd 1234", "it is acbd 1234", "it is abdc 1234"}


def test_without_a_word_of_four_letters_there_is_no_typo() -> None:
    generator = np.random.default_rng(0)
    assert typo("a bb ccc 1234 aaaa", spans("a bb ccc 1234 aaaa"), generator) is None


def test_a_synonym_keeps_the_capital() -> None:
    generator = np.random.default_rng(0)
    assert synonym("Good, is it?", spans("Good, is it?"), generator) == "Great, is it?"
    assert synonym("that is awful", spans("that is awful"), generator) == "that is bad"
    assert synonym("goodness", spans("goodness"), generator) is None


def test_the_text_twice_begins_with_the_text() -> None:
    generator = np.random.default_rng(0)
    assert duplicate("one two", spans("one two"), generator) == "one two one two"


def test_every_change_keeps_the_place_of_every_token() -> None:
    generator = np.random.default_rng(0)
    text = "The good film, a tale of isn't."
    for change in CHANGES.values():
        changed = change(text, spans(text), generator)
        assert changed is not None
        before, after = tokenizer.tokenize(text), tokenizer.tokenize(changed)[: len(spans(text))]
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1


def test_synonyms_are_single_words_other_than_themselves() -> None:
    assert len(SYNONYMS) > 100
    assert all(one != other and len(tokenizer.tokenize(other)) == 1 for one, other in SYNONYMS.items())
