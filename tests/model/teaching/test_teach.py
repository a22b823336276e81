"""Teaching: a label from a few examples answers at once, is taken back without a trace, and leaves all else alone."""

from pathlib import Path

import numpy as np
import pytest

from tests.model_metadata import metadata_of, with_metadata
from textcls import ArtifactError, Classifier, ConfigError, InputError
from textcls.errors import NotFoundError, TooLargeError
from textcls.model import artifact
from textcls.model.teaching import take_back, teach, write
from textcls.model.teaching.teach import EXAMPLE_CHARACTERS, MOST_EXAMPLES

DRAGONS = ["the dragon burnt our castle", "a dragon sat on the roof again", "the dragon burnt our sheep"]


@pytest.fixture
def data(prototypes_path: Path) -> bytes:
    return prototypes_path.read_bytes()


def test_a_taught_label_answers_texts_that_share_words_which_training_has_never_seen(
    prototypes: Classifier, data: bytes
) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS}).classifier
    assert taught.labels == (*prototypes.labels, "dragons")
    answer = taught.predict("is that a dragon over there?", explain=True)
    assert answer.label == "dragons"
    assert answer.explanation is not None
    best = answer.explanation.top(1)[0]
    assert (best.text, best.known) == ("dragon", False)


def test_a_label_is_one_however_it_is_written(prototypes: Classifier, data: bytes) -> None:
    first = teach(prototypes, data, {" caf\u00e9 ": DRAGONS})
    assert first.classifier.labels[-1] == "caf\u00e9"
    again = teach(first.classifier, first.content, {"cafe\u0301": DRAGONS})
    assert again.content == first.content
    with pytest.raises(InputError, match="is there twice: write it in one way"):
        teach(prototypes, data, {"dragons": DRAGONS, "dragons ": DRAGONS})


def test_in_a_tree_a_node_may_be_named_alone_and_no_part_of_a_label_is_empty(
    prototypes_path: Path, tmp_path: Path
) -> None:
    labels = [f"money > {label}" for label in metadata_of(prototypes_path)["labels"]]
    path = tmp_path / "tree.onnx"
    path.write_bytes(with_metadata(prototypes_path, metadata_of(prototypes_path) | {"labels": labels}))
    classifier, name = Classifier.load(path), labels[0].removeprefix("money > ")
    found = teach(classifier, path.read_bytes(), {name: DRAGONS})
    assert [(one.label, one.new) for one in found.labels] == [(labels[0], False)]
    assert take_back(found.classifier, found.content, [name]).classifier.info == classifier.info
    for odd in ("money > ", "> x", "money > > x"):
        with pytest.raises(InputError, match="has an empty part between separators '>'"):
            teach(classifier, path.read_bytes(), {odd: DRAGONS})
    with pytest.raises(InputError, match="without the spaces around it: if it is a path, write 'money > drag"):
        teach(classifier, path.read_bytes(), {"money >dragons": DRAGONS})
    with pytest.raises(
        InputError, match="top of the tree, where no other is: write its whole path, such as 'money > d"
    ):
        teach(classifier, path.read_bytes(), {"dragons": DRAGONS})
    for new in ("beasts > dragons", "money", "money > wait >5 days", "money > a->b"):
        assert teach(classifier, path.read_bytes(), {new: DRAGONS}).labels[0].label == new


def test_the_file_of_a_taught_model_answers_as_the_model_that_was_returned(
    prototypes: Classifier, data: bytes, tmp_path: Path
) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS})
    write(taught, tmp_path / "new.onnx")
    loaded = Classifier.load(tmp_path / "new.onnx")
    texts = ["a dragon", "where is my parcel?", ""]
    for ours, theirs in zip(taught.classifier.predict(texts), loaded.predict(texts), strict=True):
        np.testing.assert_array_equal(ours.probabilities, theirs.probabilities)


def test_logits_of_the_other_labels_stay_bit_for_bit(prototypes: Classifier, data: bytes) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS}).classifier
    for text in ("My card was charged TWICE!!", "", "zqxjkvwq dragon"):
        before, after = prototypes.explain(text), taught.explain(text)
        np.testing.assert_allclose(after.logit_values[:-1], before.logit_values, atol=1e-5)


def test_taking_back_gives_the_very_bytes_of_before(prototypes: Classifier, data: bytes) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS, "billing": ["a coin for the ferryman"]})
    back = take_back(taught.classifier, taught.content, ["billing", "dragons"])
    assert back.content == data


def test_teaching_the_same_again_changes_nothing(prototypes: Classifier, data: bytes) -> None:
    once = teach(prototypes, data, {"dragons": DRAGONS})
    assert teach(once.classifier, once.content, {"dragons": DRAGONS}).content == once.content


def test_teaching_a_label_again_replaces_what_it_was_taught_and_keeps_its_training(
    prototypes: Classifier, data: bytes
) -> None:
    number = prototypes.labels.index("billing")
    assert prototypes.info.prototypes is not None
    trained = prototypes.info.prototypes.support[number]
    found = teach(prototypes, data, {"billing": DRAGONS})
    found = teach(found.classifier, found.content, {"billing": DRAGONS[:1]})
    now = found.classifier.info.prototypes
    assert now is not None
    assert now.support[number][:-1] == trained
    assert now.support[number][-1].taught
    assert now.taught(number) == 1


def test_contributions_of_a_taught_model_add_up(prototypes: Classifier, data: bytes) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS}).classifier
    for text in ("a dragon charged my card twice", "one", "", "zqxjkvwq " * 90):
        explanation = taught.explain(text)
        assert explanation.completeness_error <= 1e-4 * (1 + abs(explanation.logit_values).max())


def test_an_explanation_names_the_examples_that_carried_the_answer(prototypes: Classifier, data: bytes) -> None:
    taught = teach(prototypes, data, {"dragons": DRAGONS}).classifier
    nearest = taught.explain("a dragon sat on the roof").nearest()
    assert (nearest[0].row.row, nearest[0].row.text) == (2, DRAGONS[1])
    assert nearest[0].weight > nearest[1].weight > 0
    assert sum(one.weight for one in nearest) == pytest.approx(1, abs=1e-5)


def test_many_examples_become_a_few_means_that_stand_for_all_of_them(prototypes: Classifier, data: bytes) -> None:
    examples = [f"dragon number {i} burnt {i * 7} houses" for i in range(50)]
    taught = teach(prototypes, data, {"dragons": examples}).classifier
    assert taught.info.prototypes is not None
    rows = taught.info.prototypes.support[-1]
    assert len(rows) < len(examples)
    assert sum(row.rows for row in rows) == len(examples)
    assert taught.predict("dragon number 61 burnt 3 houses").label == "dragons"


def test_examples_are_asked_what_they_would_be_without_themselves(prototypes: Classifier, data: bytes) -> None:
    one, two = teach(prototypes, data, {"dragons": DRAGONS, "cats": ["a cat"]}).labels
    assert (one.label, one.new, one.examples, one.asked, one.found) == ("dragons", True, 3, 3, 2)
    assert (two.asked, two.found) == (0, None)
    mixed = teach(prototypes, data, {"odd": ["my card was charged twice", "where is my parcel"]}).labels[0]
    assert mixed.found == 0
    assert sum(times for _, times in mixed.mistaken) == 2


def test_a_kept_text_is_cut_and_half_a_character_is_a_mark(prototypes: Classifier, data: bytes) -> None:
    taught = teach(prototypes, data, {"dragons": ["a dragon \ud83d " * 100]}).classifier
    text = taught.explain("a dragon").nearest("dragons")[0].row.text
    assert text == ("a dragon ? " * 100)[:300]


def test_copies_of_an_example_count_once(prototypes: Classifier, data: bytes) -> None:
    assert teach(prototypes, data, {"dragons": DRAGONS * 3}).labels[0].examples == 3


@pytest.mark.parametrize(
    ("examples", "error", "said"),
    [
        ({}, InputError, "No label to teach"),
        ({"x": []}, InputError, "no examples of 'x'"),
        ({"x": ["fine", " \n"]}, InputError, "Example 2 of 'x' contains no word or symbol"),
        ({"x": [3]}, InputError, "Example 1 of 'x' is not a string but int"),
        ({"": ["fine"]}, InputError, "is empty"),
        ({"x" * 1001: ["fine"]}, InputError, "1,000"),
        ({"x": ["a"] * (MOST_EXAMPLES + 1)}, TooLargeError, "With that many, train a model"),
        ({"x": ["a" * (EXAMPLE_CHARACTERS + 1)]}, TooLargeError, "100,000 is the maximum"),
        ({f"label {i}": ["a"] for i in range(101)}, TooLargeError, "the maximum is 100"),
    ],
)
def test_what_cannot_be_taught_is_refused_in_a_sentence(
    prototypes: Classifier, data: bytes, examples: dict[str, list[str]], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        teach(prototypes, data, examples)


def test_what_was_never_taught_cannot_be_taken_back(prototypes: Classifier, data: bytes) -> None:
    with pytest.raises(NotFoundError, match="comes from training and was never taught"):
        take_back(prototypes, data, ["billing"])
    with pytest.raises(ConfigError, match=r"The model has no label 'biling' \(did you mean 'billing'"):
        take_back(prototypes, data, ["biling"])


def test_a_model_of_linear_labels_says_how_to_train_one_that_can_be_taught(
    classifier: Classifier, model_path: Path
) -> None:
    with pytest.raises(ConfigError, match="--head prototypes"):
        teach(classifier, model_path.read_bytes(), {"dragons": DRAGONS})


def test_a_file_whose_support_rows_are_others_than_it_says_is_refused(prototypes: Classifier, data: bytes) -> None:
    import onnx

    model = onnx.load_model_from_string(data)
    (counts,) = [one for one in model.graph.initializer if one.name == artifact.SUPPORT_COUNTS]
    counts.raw_data = (np.frombuffer(counts.raw_data, np.int64) + 1).tobytes()
    damaged = model.SerializeToString()
    with pytest.raises(ArtifactError, match="other support rows"):
        teach(prototypes, damaged, {"dragons": DRAGONS})
