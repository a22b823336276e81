import numpy as np

from textcls import tokenizer
from textcls_training.explaining.robustness import CHANGES, SYNONYMS, duplicate, synonym, typo

GENERATOR = np.random.default_rng(0)


def spans(text: str) -> list[tuple[int, int]]:
    return list(tokenizer.token_spans(text))


def test_a_typo_swaps_two_neighbouring_letters_of_one_long_word() -> None:
    text = "it is abcd 1234"
    for _ in range(20):
        assert typo(text, spans(text), GENERATOR) in {"it is bacd 1234", "it is acbd 1234", "it is abdc 1234"}


def test_without_a_word_of_four_letters_there_is_no_typo() -> None:
    assert typo("a bb ccc 1234 aaaa", spans("a bb ccc 1234 aaaa"), GENERATOR) is None


def test_a_synonym_keeps_the_capital() -> None:
    assert synonym("Good, is it?", spans("Good, is it?"), GENERATOR) == "Great, is it?"
    assert synonym("that is awful", spans("that is awful"), GENERATOR) == "that is bad"
    assert synonym("goodness", spans("goodness"), GENERATOR) is None


def test_the_text_twice_begins_with_the_text() -> None:
    assert duplicate("one two", spans("one two"), GENERATOR) == "one two one two"


def test_every_change_keeps_the_place_of_every_token() -> None:
    text = "The good film, a tale of isn't."
    for change in CHANGES.values():
        changed = change(text, spans(text), GENERATOR)
        assert changed is not None
        before, after = tokenizer.tokenize(text), tokenizer.tokenize(changed)[: len(spans(text))]
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1


def test_synonyms_are_single_words_other_than_themselves() -> None:
    assert len(SYNONYMS) > 100
    assert all(one != other and len(tokenizer.tokenize(other)) == 1 for one, other in SYNONYMS.items())
