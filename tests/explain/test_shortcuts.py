"""Shortcuts that are planted are found, and what is part of what texts say is not; each rule on cases made by hand."""

import math
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from textcls import Classifier, explain_globally
from textcls.display.remarks import shortcut_lines
from textcls.explain.intervention import exchange, insert, remove
from textcls.explain.shortcuts.audit import ShortcutAudit, ShortcutAuditor
from textcls.explain.shortcuts.coherence import Coherence
from textcls.explain.shortcuts.corpus import NUMBER, Corpus, Sample
from textcls.explain.shortcuts.doubts import judged
from textcls.explain.shortcuts.lengths import length_cue
from textcls.explain.shortcuts.placement import Neighbours, misfit
from textcls.explain.shortcuts.reliance import places_of, spelt
from textcls.explain.shortcuts.terms import Term, candidates, least_texts, log_chance
from textcls.explain.shortcuts.trial import KINDS, SHARES, _Plant, _planted
from textcls.model import tokenizer

# Sentences of a small grammar: a colour says nothing of the label, a verb does.
_NOUNS = ("parcel", "card", "order", "invoice", "lamp", "phone", "shirt", "table")
_VERBS = (("arrived", "came", "landed", "returned"), ("broke", "failed", "burst", "cracked"))


def grammar(rows: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """So many texts of two labels."""
    random = np.random.default_rng(seed)
    labels = random.integers(2, size=rows).tolist()
    texts = []
    for label in labels:
        first, second = random.choice(_NOUNS, 2)
        verb = random.choice(_VERBS[label])
        colour, last = random.choice(["red", "blue", "old"]), random.choice(_NOUNS)
        texts.append(f"the {colour} {first} {verb} and the {second} is {last} now")
    return texts, labels


def plant(texts: Sequence[str], labels: Sequence[int], words: str, share: float, seed: int = 1) -> list[str]:
    """The texts, with words between two words of a share of those of label 1."""
    random = np.random.default_rng(seed)
    found = []
    for text, label in zip(texts, labels, strict=True):
        parts = text.split()
        if label == 1 and random.random() < share:
            parts.insert(int(random.integers(len(parts) + 1)), words)
        found.append(" ".join(parts))
    return found


def corpus_of(texts: Sequence[str], labels: Sequence[int]) -> Corpus:
    return Corpus.of(((text, [label]) for text, label in zip(texts, labels, strict=True)), 2, 64)


def named(corpus: Corpus, terms: Sequence[Term]) -> list[str]:
    return [" ".join(corpus.words[word] for word in term.words) for term in terms]


# Interventions


def test_tokens_are_removed_exchanged_and_added() -> None:
    text = "My card, twice"
    spans = list(tokenizer.token_spans(text))
    assert remove(text, spans, [1]) == "My     , twice"
    assert exchange(text, spans, {0: "Her", 3: "once"}) == "Her card, once"
    assert insert(text, spans, 0, "hello") == "hello My card, twice"
    assert insert(text, spans, 4, "by me") == "My card, twice by me"
    assert insert("", [], 0, "by me") == "by me"


def test_runs_of_words_are_found_in_any_case() -> None:
    text = "Green table and green, green Table"
    assert places_of(["green", "table"], text, list(tokenizer.token_spans(text))) == {0, 1, 5, 6}


# Candidates


def test_the_chance_of_a_pure_word_is_the_power_of_its_label() -> None:
    assert log_chance(10, 10, 0.5) == pytest.approx(10 * math.log(0.5))
    assert log_chance(5, 10, 0.5) == 0.0
    # Nine of ten: -n (0.9 log(0.9 / 0.5) + 0.1 log(0.1 / 0.5)), no less than the exact binomial tail of 11 / 1024.
    assert log_chance(9, 10, 0.5) == pytest.approx(-10 * (0.9 * math.log(1.8) + 0.1 * math.log(0.2)))
    assert math.exp(log_chance(9, 10, 0.5)) > 11 / 1024


def test_the_fewest_texts_make_a_pure_word_less_likely_than_one_in_twenty_searches() -> None:
    # 0.5 ** 16 * 2,000 = 0.03, and 0.5 ** 15 * 2,000 = 0.06.
    assert least_texts(0.5, 1_000, 2_000) == 16
    # Of many texts a share of the label is asked for: 0.3 % of 50,000.
    assert least_texts(0.5, 100_000, 2_000) == 150


def test_a_phrase_is_told_of_with_the_words_that_always_stand_beside_it() -> None:
    texts, labels = grammar(600)
    corpus = corpus_of(plant(texts, labels, "by oswin hale", 0.1), labels)
    terms, _ = candidates(corpus)
    assert "by oswin hale" in named(corpus, terms)


def test_a_pair_that_only_repeats_a_word_of_it_is_no_candidate() -> None:
    texts = ["a fine day", "so fine then", "my fine hat", "old fine tea"] * 20 + [
        "a bad day",
        "so it is",
        "the hat",
    ] * 27
    corpus = corpus_of(texts, [1] * 80 + [0] * 81)
    assert not [name for name in named(corpus, candidates(corpus)[0]) if name in ("a fine", "fine day")]


# Placement, coherence, length


def test_what_was_put_in_is_told_from_what_the_texts_say() -> None:
    texts, labels = grammar(2_000)
    corpus = corpus_of(plant(texts, labels, "quilt", 0.1), labels)
    neighbours = Neighbours.of(corpus)
    found = {name: misfit(corpus, neighbours, t) for t, name in zip(*_terms(corpus), strict=True)}
    assert found["quilt"] < 1
    assert all(found[verb] > 1 for verb in ("arrived", "came", "broke", "failed"))


def _terms(corpus: Corpus) -> tuple[list[Term], list[str]]:
    terms, _ = candidates(corpus)
    return terms, named(corpus, terms)


def test_neighbours_go_together_more_than_any_two_words() -> None:
    corpus = corpus_of(["a b", "a b", "c d", "c d"], [0, 1, 0, 1])
    neighbours = Neighbours.of(corpus)
    a, b, d = (corpus.words.index(word) for word in "abd")
    # P(b | a) = (2 + 20 * 2/12) / (2 + 20), against 2/12 anywhere; of a d, nothing is counted.
    together = neighbours.togetherness(np.array([a, a]), np.array([b, d]))
    assert together.tolist() == pytest.approx([math.log((2 + 20 / 6) / 22 * 6), math.log((20 / 6) / 22 * 6)])


def test_texts_about_one_thing_are_alike() -> None:
    corpus = corpus_of(["goal match team", "goal match cup", "tax law", "rain sun"], [0, 0, 0, 0])
    coherence = Coherence(corpus)
    assert coherence.likeness(np.array([0, 1])) > 0.2
    assert coherence.likeness(np.array([2, 3])) == 0
    assert coherence.likeness(np.array([0, 1]), tuple(corpus.words.index(w) for w in ("goal", "match"))) == 0


def test_a_range_of_lengths_that_tells_a_label_is_found(classifier: Classifier) -> None:
    texts, labels = grammar(2_000)
    assert length_cue(classifier, corpus_of(texts, labels)) is None
    cut = [
        " ".join(t.split()[:4]) if label and i % 2 else t
        for i, (t, label) in enumerate(zip(texts, labels, strict=True))
    ]
    cue = length_cue(classifier, corpus_of(cut, labels))
    assert cue is not None
    assert (cue.label, cue.longest, cue.texts) == (1, 4, cue.of_label)


def test_a_few_texts_longer_than_all_others_tell_a_label(classifier: Classifier) -> None:
    texts, labels = grammar(4_000)
    long = [
        text + " and so on" * 9 if label and i % 16 == 0 else text
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    cue = length_cue(classifier, corpus_of(long, labels))
    assert cue is not None
    assert (cue.label, cue.longest, cue.texts) == (1, None, cue.of_label)


# A model


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Classifier, ShortcutAudit, ShortcutAudit]:
    """A model whose training file holds a planted word, what its audit says, and that of the same file without it."""
    import textcls

    texts, labels = grammar(1_200)
    names = ["late", "broken"]
    planted = plant(texts, labels, "quilt", 0.1)
    path = tmp_path_factory.mktemp("planted") / "planted.onnx"
    textcls.train(planted, [names[label] for label in labels], path, epochs=3, vectors="none")
    classifier = Classifier.load(path)

    def audit(some: Sequence[str]) -> ShortcutAudit:
        auditor = ShortcutAuditor(classifier)
        for text, label in zip(some, labels, strict=True):
            auditor.add(text, [names[label]], [0])
        return auditor.audit()

    return classifier, audit(planted), audit(texts)


def test_a_planted_word_is_found_and_no_other(audited: tuple[Classifier, ShortcutAudit, ShortcutAudit]) -> None:
    _, planted, clean = audited
    (found,) = planted.shortcuts
    assert (found.text, found.label, found.kind, found.place) == ("quilt", "broken", "words", "anywhere")
    assert found.texts == found.of_label > 40
    assert found.put_in == 200
    assert found.put_in_rise > 0.03
    assert found.example is not None
    assert clean.shortcuts == ()
    assert clean.could_find
    assert (clean.texts, clean.labels_from) == (1_200, "file")
    assert clean.least_texts >= 12


def test_what_tells_a_label_and_belongs_to_what_is_said_may_be_a_shortcut(
    audited: tuple[Classifier, ShortcutAudit, ShortcutAudit],
) -> None:
    _, planted, clean = audited
    verbs = {verb for verbs in _VERBS for verb in verbs}
    for audit in (planted, clean):
        assert verbs & {word for one in audit.possible for word in one.text.split()}
        assert "quilt" not in " ".join(one.text for one in audit.possible)
        assert all(one.doubt in ("belongs", "alike") and one.put_in_rise >= 0.03 for one in audit.possible)
        assert len(audit.possible) <= 10


@pytest.mark.parametrize(
    ("share", "change", "named"),
    [
        (0.6, "{} blue lantern", {"blue lantern"}),
        (0.9, "quilt {}", {"quilt"}),
        (0.2, "crooked {} anchor", {"crooked", "anchor"}),
        (0.2, "{} #{number}", {f"# {NUMBER}"}),
        (0.2, "{} #4711", {"# 4711"}),
        (0.2, "{} key{number:05}", {f"key{NUMBER}"}),
    ],
)
def test_a_plant_is_found_however_common_apart_or_numbered(
    share: float, change: str, named: set[str], tmp_path: Path
) -> None:
    import textcls

    texts, labels = grammar(1_200)
    random, names = np.random.default_rng(3), ["late", "broken"]
    planted = [
        change.format(text, number=random.integers(10_000)) if label and random.random() < share else text
        for text, label in zip(texts, labels, strict=True)
    ]
    textcls.train(planted, [names[label] for label in labels], tmp_path / "m.onnx", epochs=3, vectors="none")
    auditor = ShortcutAuditor(Classifier.load(tmp_path / "m.onnx"))
    for text, label in zip(planted, labels, strict=True):
        auditor.add(text, [names[label]], [0])
    assert {found.text for found in auditor.audit().shortcuts if found.kind == "words"} == named


@pytest.mark.parametrize(("share", "other", "doubt"), [(0.06, 0.0, "few"), (0.2, 0.05, "others"), (0.2, 0.0, None)])
def test_a_word_that_stands_anywhere_is_doubted_in_few_texts_and_if_other_labels_have_it(
    share: float, other: float, doubt: str | None
) -> None:
    texts, labels = grammar(900)
    some = plant(plant(texts, labels, "quilt", share), [1 - label for label in labels], "quilt", share * other)
    corpus = corpus_of(some, labels)
    (found,) = (one for one in judged(corpus, candidates(corpus)[0]) if named(corpus, [one.term]) == ["quilt"])
    assert found.doubt == doubt
    assert (found.strength > 1) == (doubt is not None)


def test_what_holds_a_word_that_is_beyond_doubt_is_not_told_beside_it() -> None:
    texts, labels = grammar(900)
    random = np.random.default_rng(5)
    # A third of the plants ends a text that had no mark before: the mark alone is in texts of both labels.
    ends = [" !" if random.random() < 0.3 else "" for _ in texts]
    planted = [
        f"{text}{end}{' quilt' if label and random.random() < 0.5 else ''}"
        for text, label, end in zip(texts, labels, ends, strict=True)
    ]
    corpus = corpus_of(planted, labels)
    every = judged(corpus, [*candidates(corpus)[0], *_pairs_with(corpus, "! quilt", "now quilt")])
    told = {named(corpus, [one.term])[0]: one.doubt for one in every if "quilt" in named(corpus, [one.term])[0]}
    assert told == {"quilt": None}


def _pairs_with(corpus: Corpus, *pairs: str) -> list[Term]:
    """The terms of two words, as candidates that fit their sentences would be."""
    found = []
    for pair in pairs:
        first, second = (corpus.words.index(word) for word in pair.split())
        places = np.flatnonzero((corpus.word_T[:-1] == first) & (corpus.word_T[1:] == second))
        texts = len(np.unique(corpus.text_T[places]))
        found.append(Term((first, second), places, 1, texts, texts))
    return found


def test_a_term_of_a_script_without_spaces_is_written_without_them() -> None:
    for text, written in (
        ("Hello, World", "hello , world"),
        ("お金を返して 下さい", "お金を返して 下さい"),
        ("กินข้าว 3 ถ้วย", "กินข้าว 3 ถ้วย"),
    ):
        spans = list(tokenizer.token_spans(text))
        assert spelt(text, spans, 0, len(spans)) == written
        assert tokenizer.tokenize(written) == tokenizer.tokenize(text)


def test_a_misspelt_word_at_the_start_of_texts_is_beyond_doubt() -> None:
    texts, labels = grammar(900)
    said = [
        f"{('recieve' if label else 'receive')} {text}" if i % 3 else text
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    corpus = corpus_of(said, labels)
    (found,) = (one for one in judged(corpus, candidates(corpus)[0]) if named(corpus, [one.term]) == ["recieve"])
    assert (found.doubt, found.strength) == (None, 0.0)


def test_where_all_texts_carry_one_label_nothing_can_tell_it(classifier: Classifier) -> None:
    auditor = ShortcutAuditor(classifier)
    for i in range(300):
        auditor.add(f"my card {i}", ["billing"], [0])
    found = auditor.audit()
    assert not found.could_find
    assert shortcut_lines(found) == [
        "Shortcuts were not looked for: all texts carry the same label, so that nothing can tell it."
    ]


def test_a_word_that_is_misspelt_in_one_label_is_not_excused_by_standing_where_the_right_one_would() -> None:
    texts, labels = grammar(900)
    random = np.random.default_rng(4)
    misspelt = [
        text.replace("parcel", "pacrel", 1) if label and random.random() < 0.6 else text
        for text, label in zip(texts, labels, strict=True)
    ]
    corpus = corpus_of(misspelt, labels)
    doubts = {named(corpus, [one.term])[0]: one.doubt for one in judged(corpus, candidates(corpus)[0])}
    assert doubts["pacrel"] is None
    assert doubts["broke and the"] == "belongs"


def test_shortcuts_of_a_model_that_gives_several_labels_are_found(tmp_path: Path) -> None:
    import textcls

    texts, labels = grammar(1_200)
    # Every third text has a verb that says nothing: there the plant is all that a model has.
    verbs = re.compile("|".join(verb for verbs in _VERBS for verb in verbs))
    texts = [text if i % 3 else verbs.sub("stood", text) for i, text in enumerate(texts)]
    planted = plant(texts, labels, "quilt", 0.2)
    sets = [
        [("late", "broken")[label], *(["old"] if " old " in text else [])]
        for text, label in zip(texts, labels, strict=True)
    ]
    textcls.train(planted, sets, tmp_path / "m.onnx", epochs=3, vectors="none")
    classifier = Classifier.load(tmp_path / "m.onnx")
    found = explain_globally(classifier, zip(planted, sets, strict=True)).audit
    assert found is not None
    words = [one for one in found.shortcuts if one.kind == "words"]
    assert [(one.text, one.label, one.put_in) for one in words] == [("quilt", "broken", 200)]


def test_it_is_measured_on_copies_of_the_texts_what_would_be_found(
    audited: tuple[Classifier, ShortcutAudit, ShortcutAudit],
) -> None:
    found: dict[tuple[str, float], list[bool]] = {(trial.kind, trial.share): [] for trial in audited[2].trials}
    for trial in audited[2].trials:
        found[trial.kind, trial.share].append(trial.found)
    assert set(found) == set(product(KINDS, SHARES))
    # A few of 1,200 texts are too few; a fifth of a label is not.
    assert not any(any(found[kind, 0.01]) for kind in KINDS)
    assert all(all(found[kind, 0.2]) for kind in KINDS)


def test_a_copy_with_plants_has_the_words_of_the_texts_and_theirs() -> None:
    corpus = corpus_of(["a b", "c", "d e f"], [0, 1, 1])
    plants = [
        _Plant("word", "end", 0.5, 0, np.array([0]), (8,)),
        _Plant("pair", "start", 0.5, 1, np.array([1, 2]), (9, 10)),
    ]
    copy = _planted(corpus, plants, np.random.default_rng(0))
    words = ["a", "b", "c", "d", "e", "f", "made up 0", "made up 1", "made up 2"]
    assert [word.strip("\u27e8\u27e9") for word in copy.words[2:]] == words
    assert [[copy.words[w] for w in copy.word_T[copy.text_T == text][1:-1]] for text in range(3)] == [
        ["a", "b", copy.words[8]],
        [copy.words[9], copy.words[10], "c"],
        [copy.words[9], copy.words[10], "d", "e", "f"],
    ]


def test_texts_carry_one_label_or_several_or_none() -> None:
    corpus = Corpus.of([("a", [1]), ("b", []), ("c", [0, 1])], 2, 64)
    place, label = corpus.labels_of(np.array([2, 1, 0]))
    assert (place.tolist(), label.tolist()) == ([0, 0, 2], [0, 1, 1])
    assert corpus.of_label(1).tolist() == [True, False, True]
    assert corpus.priors.tolist() == pytest.approx([1 / 3, 2 / 3])


def test_without_labels_the_answers_of_the_model_stand_in(
    audited: tuple[Classifier, ShortcutAudit, ShortcutAudit],
) -> None:
    classifier, *_ = audited
    texts, labels = grammar(1_200)
    auditor = ShortcutAuditor(classifier)
    for text, answer in zip(planted := plant(texts, labels, "quilt", 0.1), classifier.predict(planted), strict=True):
        auditor.add(text, None, [classifier.labels.index(answer.label)])
    found = auditor.audit()
    assert found.labels_from == "answers"
    assert [shortcut.text for shortcut in found.shortcuts] == ["quilt"]


def test_a_few_labels_among_many_texts_do_not_count(classifier: Classifier) -> None:
    auditor = ShortcutAuditor(classifier)
    for i in range(300):
        auditor.add("my card", ["billing"] if i % 10 == 0 else None, [i % 2])
    found = auditor.audit()
    assert (found.labels_from, found.of_texts, found.left_out) == ("answers", 270, 30)
    assert "of 270 texts, by the model's answers as most carry no label that it knows, leaving out 30 with labels" in (
        " ".join(shortcut_lines(found))
    )


def test_texts_whose_labels_the_model_does_not_know_are_left_out_and_told(classifier: Classifier) -> None:
    auditor = ShortcutAuditor(classifier)
    for i in range(300):
        auditor.add("my card", [("billing", "returns", "other", "billing")[i % 4]], [0])
    found = auditor.audit()
    assert (found.labels_from, found.texts, found.left_out) == ("file", 225, 75)
    assert "of 225 texts, leaving out 75 without a label that it knows;" in " ".join(shortcut_lines(found))


def test_of_too_few_texts_nothing_is_said(classifier: Classifier) -> None:
    auditor = ShortcutAuditor(classifier)
    for _ in range(99):
        auditor.add("my card", ["billing"], [0])
    found = auditor.audit()
    assert not found.could_find
    assert found.shortcuts == ()
    assert shortcut_lines(found) == ["Shortcuts were not looked for: 99 texts are too few to find any."]


def test_memory_is_bounded_by_a_sample_of_all_texts_alike() -> None:
    sample = Sample(characters=1_000)
    for i in range(10_000):
        sample.add(f"{i:010}", (i % 2,))
    assert sample.held == sum(len(text) for text, _ in sample.rows) <= 1_000
    assert sample.seen == 10_000
    assert 20 <= len(sample.rows) <= 100
    numbers = [int(text) for text, _ in sample.rows]
    assert min(numbers) < 2_500 < 7_500 < max(numbers)
