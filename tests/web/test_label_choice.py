"""Which labels stand on the page of `textcls label`, and which one Enter gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from textcls.display.html.fragments import ASSETS

MANY = [f"label {i}" for i in range(30)]
RUN = """
import { meant, scoresOf, shown } from "./label_choice.mjs";
const scores = scoresOf(given.proposal);
const rows = shown(given.labels, scores, given.typed ?? "", given.all ?? false);
found = { rows, meant: rows[meant(rows, scores, given.typed ?? "", given.before ?? null)]?.label ?? null };
"""


@pytest.fixture
def ask(in_node: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Ask the module."""
    for name in ("label_choice.mjs", "tree.mjs"):
        (tmp_path / name).write_bytes((ASSETS / name).read_bytes())
    return lambda **given: in_node(RUN, given, tmp_path)


def proposal(scores: dict[str, float]) -> dict[str, Any]:
    return {"labels": [{"label": label, "score": score} for label, score in scores.items()]}


def test_few_labels_keep_their_places_and_the_best_one_is_meant(ask: Callable[..., Any]) -> None:
    found = ask(labels=["b", "a", "c"], proposal=proposal({"c": 0.7, "a": 0.2, "b": 0.1}))
    assert [(row["key"], row["label"]) for row in found["rows"]] == [("1", "b"), ("2", "a"), ("3", "c")]
    assert found["meant"] == "c"
    assert ask(labels=["b", "a"], proposal=None)["meant"] is None
    assert ask(labels=["b", "a"], proposal=proposal({"a": 0.9}), before="b")["meant"] == "b"


def test_of_many_labels_the_most_probable_come_first_and_the_rest_is_folded(ask: Callable[..., Any]) -> None:
    best = proposal({"label 20": 0.5, "label 3": 0.3})
    found = ask(labels=MANY, proposal=best)["rows"]
    assert [row["label"] for row in found[:3]] == ["label 20", "label 3", "label 0"]
    assert len(found) == 24
    assert len(ask(labels=MANY, proposal=best, all=True)["rows"]) == 30


def test_letters_find_a_node_of_a_tree_by_its_own_name_and_the_more_probable_ones_first(
    ask: Callable[..., Any],
) -> None:
    labels = ["Food > Bakers", "Food > Cooks", "Sales > Bakery goods", "Sales > Cakes, baked", "Bakers > Other"]
    found = ask(labels=labels, proposal=proposal({"Sales > Bakery goods": 0.2, "Food > Cooks": 0.7}), typed="bake")
    assert [row["label"] for row in found["rows"]] == [
        "Sales > Bakery goods",
        "Food > Bakers",
        "Bakers > Other",
        "Sales > Cakes, baked",
        "bake",
    ]
    assert ask(labels=labels, proposal=None, typed="bakers")["rows"][0]["label"] == "Food > Bakers"


def test_letters_find_labels_and_name_new_ones(ask: Callable[..., Any]) -> None:
    found = ask(labels=["sales", "Réturns", "no return", "return"], proposal=None, typed="return")
    assert [row["label"] for row in found["rows"]] == ["return", "Réturns", "no return"]
    assert found["meant"] == "return"
    found = ask(labels=["sales"], proposal=None, typed=" refunds ")
    assert found["rows"] == [{"label": "refunds", "key": "", "fresh": True}]
    assert found["meant"] == "refunds"
