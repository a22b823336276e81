"""Human rationales: what a field may hold, and which tokens it means."""

from collections.abc import Sequence

import pytest

from textcls.errors import InputError
from textcls_training.data import rationales
from textcls_training.data.corpus import Corpus

TEXT = "My card was charged twice, twice!"
WHERE = "rows.csv: row 3, column 'why'"


@pytest.mark.parametrize(
    ("cell", "spans"),
    [
        ("", ()),
        ("  ", ()),
        ("[]", ()),
        (None, ()),
        ([], ()),
        ([[3, 7]], ((3, 7),)),
        (["CARD"], ((3, 7),)),
        ("[[3, 7], [12, 25]]", ((3, 7), (12, 25))),
        ('["CARD"]', ((3, 7),)),
        ('["twice"]', ((20, 25), (27, 32))),
        ('["charged  twice", [0, 2]]', ((12, 25), (0, 2))),
        ('["twice,"]', ((20, 26),)),
    ],
)
def test_a_field_holds_spans_of_characters_or_phrases(cell: object, spans: rationales.Spans) -> None:
    assert rationales.parse(cell, TEXT, WHERE) == spans


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("card", "a rationale is a JSON list"),
        ('{"a": 1}', "a rationale is a JSON list"),
        ("[[3, 70]]", r"the text of 33 characters has no span \[3, 70\]"),
        ("[[7, 3]]", r"no span \[7, 3\]"),
        ("[[-1, 3]]", r"no span \[-1, 3\]"),
        ("[3]", "3 is neither a span"),
        ("[true]", "True is neither a span"),
        (3, "a rationale is a JSON list"),
        ([[3, 70]], r"no span \[3, 70\]"),
        ('[""]', "'' is neither a span"),
        ('[" "]', "the text does not contain ' '"),
        ('["refund"]', "the text does not contain 'refund'"),
        ('["car"]', "the text does not contain 'car'"),
    ],
)
def test_a_field_that_marks_nothing_is_refused_with_its_place(cell: object, said: str) -> None:
    with pytest.raises(InputError, match=f"^rows.csv: row 3, column 'why': .*{said}"):
        rationales.parse(cell, TEXT, WHERE)


def test_tokens_that_a_span_touches_are_flagged_within_what_is_read() -> None:
    texts = ["one two three", "", "naïve 東京"]
    spans: Sequence[rationales.Spans] = [((2, 5), (8, 13)), (), ((7, 8),)]
    found = rationales.token_flags(texts, spans, 2)
    # "ne t" touches the first two tokens, the third is not read; of the last text the second character of two.
    assert found.tolist() == [True, True, False, False]
    assert len(found) == len(Corpus.of(texts, 2).token)
    assert rationales.token_flags(texts, spans, 9).tolist() == [True, True, True, False, False, True]


def test_flags_and_other_tokens_mark_what_spans_do() -> None:
    text = "My card was charged twice"
    spans = rationales.parse("[[3, 7], [12, 19]]", text, "here")
    assert rationales.parse("[0, 1, 0, 1, 0]", text, "here") == spans
    theirs = {"tokens": ["my card", "was", "charged", "twice"], "rationales": [[1, 0, 0, 0], [0, 0, 1, 0]]}
    assert rationales.parse(theirs, text, "here") == ((0, 7), (12, 19))
    with pytest.raises(InputError, match="3 flags for the 5 tokens"):
        rationales.parse("[0, 1, 0]", text, "here")
    with pytest.raises(InputError, match="does not contain 'parcel'"):
        rationales.parse({"tokens": ["my", "parcel"], "rationales": [[1, 1]]}, text, "here")
    with pytest.raises(InputError, match="1 flags for the 2 tokens"):
        rationales.parse({"tokens": ["my", "card"], "rationales": [[1]]}, text, "here")
