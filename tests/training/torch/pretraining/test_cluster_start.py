"""The clusters that texts begin in, and the names of clusters."""

from collections import Counter

import numpy as np
import pytest

from tests.training.pretraining.topics import TOPICS, topic_texts
from textcls import InputError
from textcls_training.data.corpus import Corpus
from textcls_training.data.english import english
from textcls_training.pretraining.clusters.names import cluster_names, terms_of
from textcls_training.pretraining.clusters.start import first_clusters


@pytest.mark.parametrize("with_vectors", [False, True], ids=["words alone", "with vectors"])
def test_texts_of_a_topic_begin_in_one_cluster(with_vectors: bool) -> None:
    texts, topics = topic_texts(240)
    found = first_clusters(Corpus.of(texts, 50), 3, 0, english() if with_vectors else None)
    pairs = Counter(zip(found.tolist(), topics, strict=True))
    assert sum(sorted(pairs.values())[-3:]) > 0.95 * len(texts)


def test_the_same_texts_begin_in_the_same_clusters() -> None:
    corpus = Corpus.of(topic_texts(60)[0], 50)
    assert first_clusters(corpus, 3, 7).tolist() == first_clusters(corpus, 3, 7).tolist()


def test_texts_without_a_common_word_are_refused() -> None:
    texts = [f"lonely{i} word{i}" for i in range(8)]
    with pytest.raises(InputError, match="share too few words"):
        first_clusters(Corpus.of(texts, 50), 2, 0)


def test_a_cluster_is_named_by_the_words_of_its_topic() -> None:
    texts, topics = topic_texts(240)
    number = {name: i for i, name in enumerate(TOPICS)}
    names = cluster_names(Corpus.of(texts, 50), np.array([number[topic] for topic in topics]), 3)
    for name, words in zip(names, TOPICS.values(), strict=True):
        assert len(name.split("/")) == 3
        assert set(name.split("/")) <= set(words.split())


def test_names_differ_and_a_cluster_without_texts_has_one() -> None:
    corpus = Corpus.of(["same words here"] * 6, 50)
    names = cluster_names(corpus, np.array([0, 0, 0, 1, 1, 1]), 3)
    assert len(set(names)) == 3
    assert names[2] == "cluster 3"


def test_characters_of_unspaced_scripts_are_named_in_pairs() -> None:
    terms = terms_of(Corpus.of(["\u80a1\u5e02\u5927\u8dcc stocks", "1 a"], 50))
    assert terms.words == ["stocks", "\u80a1\u5e02", "\u5e02\u5927", "\u5927\u8dcc"]


def test_words_of_one_letter_are_no_characters_of_an_unspaced_script() -> None:
    terms = terms_of(Corpus.of(["\u044f \u0438 \u043e\u043d", "\u00e0 \u00f4t\u00e9"], 50))
    assert terms.words == ["\u043e\u043d", "\u00f4t\u00e9"]
