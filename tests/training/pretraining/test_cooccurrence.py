"""Co-occurrence: what is counted, what it says, and that words of one topic come to stand together."""

import math
from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textcls_training.data.corpus import Corpus
from textcls_training.pretraining import cooccurrence
from textcls_training.pretraining.vocabulary import Vocabulary


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join), min_size=1, max_size=8))
def test_each_word_of_a_text_shares_one_count_among_the_others(texts: list[str]) -> None:
    corpus = Corpus.of([*texts, "a b a b"], 100)
    vocabulary = Vocabulary.of(corpus, 10)
    expected: dict[tuple[str, str], float] = defaultdict(float)
    for text in [*texts, "a b a b"]:
        known = [word for word in text.split() if word in vocabulary.words]
        for one, other in permutations(known, 2):
            if one != other:
                expected[one, other] += 1 / (len(known) - 1)
    found = cooccurrence.together(corpus, vocabulary).toarray()
    for i, one in enumerate(vocabulary.words):
        for j, other in enumerate(vocabulary.words):
            assert found[i, j] == pytest.approx(expected[one, other], rel=1e-5)


def test_of_a_long_text_words_far_apart_do_not_stand_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "WINDOW", 3)
    # The second text begins where the first one has its second part.
    corpus = Corpus.of(["a b a c d c", "a e a", "c f c"], 100)
    found = cooccurrence.together(corpus, Vocabulary.of(corpus, 10)).toarray()
    assert Vocabulary.of(corpus, 10).words == ["a", "c"]
    assert found[0, 1] == 0


def test_information_is_positive_and_measured_against_chance() -> None:
    import scipy.sparse as sp

    count_VV = sp.csr_matrix(np.array([[0, 4, 1], [4, 0, 1], [1, 1, 0]], np.float32))
    found = cooccurrence.positive_information(count_VV).toarray()
    chance = np.array([5, 5, 2]) ** 0.75
    chance /= chance.sum()
    assert found[0, 1] == pytest.approx(math.log(4 / (5 * chance[1])), rel=1e-5)
    assert found[0, 2] == pytest.approx(max(0, math.log(1 / (5 * chance[2]))), abs=1e-6)
    assert (found >= 0).all()


def test_words_of_one_topic_come_to_stand_together() -> None:
    rng = np.random.default_rng(0)
    topics = [[f"{topic}{i}" for i in range(8)] for topic in "xy"]
    texts = [" ".join(rng.choice(topics[i % 2], 4)) + " and" for i in range(400)]
    corpus = Corpus.of(texts, 100)
    vocabulary = Vocabulary.of(corpus, 100)
    row_VD = cooccurrence.factored(
        cooccurrence.positive_information(cooccurrence.together(corpus, vocabulary)), 4, seed=0
    )
    unit_VD = row_VD / np.linalg.norm(row_VD, axis=1, keepdims=True)
    place = {word: i for i, word in enumerate(vocabulary.words)}
    likeness = unit_VD @ unit_VD.T
    same = [likeness[place[a], place[b]] for words in topics for a, b in permutations(words, 2)]
    other = [likeness[place[a], place[b]] for a in topics[0] for b in topics[1]]
    assert min(same) > max(other)
