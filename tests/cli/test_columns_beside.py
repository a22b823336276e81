"""Columns beside the text from training to answer: read, left out, answered by, and explained."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

import textcls
from tests.command_line import fail, read_rows, run, succeed, write_rows
from textcls import Classifier, ConfigError
from textcls.data import Row
from textcls.data.writing import open_writer
from textcls.explain.columns import column_effects
from textcls.explain.counterfactual import counterfactual
from textcls.model.columns import named_cell

DAYS = [f"2024-05-{day:02}" for day in range(1, 29)]
WORDS = [f"{first}{second}" for first in ("ba", "di", "fo", "gu", "li", "me") for second in ("ra", "so", "ti", "nu")]
HEADER = ("text", "product", "price", "opened", "noise", "label")


def rows_of(seed: int, rows: int = 300) -> list[tuple[str, ...]]:
    """Rows whose text says little, whose product and price say more, and whose noise says nothing."""
    draw = random.Random(seed)
    found: list[tuple[str, ...]] = []
    for _ in range(rows):
        label = draw.choice(["refund", "repair"])
        likely = "Phone" if label == "refund" else "lamp"
        product = likely if draw.random() < 0.8 else draw.choice(["Phone", "lamp", ""])
        price = draw.gauss(20 if label == "refund" else 35, 8)
        word = draw.choice(["please", "hello", "help", label if draw.random() < 0.3 else "hm"])
        price_cell = f"{price:.2f}".replace(".", ",") if draw.random() < 0.9 else "unknown"
        others = " ".join(draw.choices(WORDS, k=5))
        found.append((f"{word} {others}", product, price_cell, draw.choice(DAYS), str(draw.random()), label))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    write_rows(folder / "train.csv", [HEADER, *rows_of(1)])
    write_rows(folder / "test.csv", [HEADER, *rows_of(2)])
    run("train", folder / "train.csv", "--output", folder / "m.onnx", "--column", "*", "--vectors", "none", "--json")
    return folder


def test_the_kinds_of_columns_are_found_out_and_what_brings_nothing_is_left_out(folder: Path) -> None:
    info = Classifier.load(folder / "m.onnx").info
    assert [(column.name, column.kind) for column in info.columns] == [("product", "category"), ("price", "number")]
    assert {gain["name"]: gain["kept"] for gain in info.training["columns"]} == {
        "product": True, "price": True, "opened": False, "noise": False,
    }  # fmt: skip
    assert info.format_version == 4
    assert info.columns[0].values == ("lamp", "phone") or info.columns[0].values == ("phone", "lamp")


def test_a_file_is_answered_by_its_columns_and_better_than_by_its_text(folder: Path, tmp_path: Path) -> None:
    with_columns = json.loads(run("evaluate", folder / "m.onnx", folder / "test.csv", "--json").stdout)
    run("train", folder / "train.csv", "--output", tmp_path / "text.onnx", "--vectors", "none", "--quiet")
    alone = json.loads(run("evaluate", tmp_path / "text.onnx", folder / "test.csv", "--json").stdout)
    assert with_columns["accuracy"] > alone["accuracy"] + 0.1
    run("predict", folder / "m.onnx", folder / "test.csv", "--output", tmp_path / "out.jsonl", "--explain")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    classifier = Classifier.load(folder / "m.onnx")
    expected = classifier.predict({name: first[name] for name in HEADER[:-1]})
    assert first["predicted_label"] == expected.label
    assert first["score"] == pytest.approx(expected.score, abs=1e-4)
    assert first["explanation"][-1][0].startswith("product = ")


def test_bias_tokens_and_columns_add_up_to_the_logit(folder: Path) -> None:
    classifier = Classifier.load(folder / "m.onnx")
    for row in (
        {"text": "help there", "product": "Phone", "price": "12,5"},
        {"text": "help there", "product": "a thing never seen", "price": "nothing"},
        {"text": ""},
        "help there",
    ):
        found = classifier.explain(row)
        assert found.completeness_error < 1e-4
        assert [cell.name for cell in found.cells] == ["price", "product"]
        assert found.attribution().cells[0][0] == "price"
    seen = classifier.explain({"text": "help there", "product": "Phone", "price": "12,5"})
    assert (seen.text, [cell.value for cell in seen.cells]) == ("help there", ["12.5", "phone"])
    assert seen.cells[1].contributions[list(seen.labels).index("refund")] > 0


def test_an_unknown_category_adds_nothing_and_a_row_may_lack_columns(folder: Path) -> None:
    classifier = Classifier.load(folder / "m.onnx")
    found = classifier.explain({"text": "help there", "product": "a thing never seen"})
    assert not found.cells[1].contributions.any()
    together = classifier.predict([{"text": "help", "product": "lamp"}, "help", {"text": "help", "product": "phone"}])
    alone = [classifier.predict(row).score for row in ({"text": "help", "product": "lamp"}, "help")]
    assert [answer.score for answer in together[:2]] == pytest.approx(alone, abs=1e-6)


def test_explain_lists_columns_under_the_tokens(folder: Path, tmp_path: Path) -> None:
    asked = ("explain", folder / "m.onnx", "help there", "--column", "product=Phone", "--column", "noise=3")
    shown = run(*asked).stdout
    assert "product = phone" in shown
    assert "price is missing" in shown
    assert "bias + tokens + columns = logit" in shown
    plain = json.loads(run(*asked, "--json").stdout)
    assert [column["name"] for column in plain["columns"]] == ["price", "product"]
    evidence = plain["evidence"]
    added = sum(column["added"] for column in evidence["columns"])
    assert evidence["bias"] + sum(evidence["tokens"]) + added == pytest.approx(evidence["total"], abs=1e-4)
    run(*asked, "--html", tmp_path / "page.html", "--plot", tmp_path / "plot.svg")
    assert "product = phone" in (tmp_path / "page.html").read_text()


def test_suggestions_and_clusters_show_texts_without_their_columns(folder: Path) -> None:
    texts = {row["text"] for row in csv.DictReader((folder / "test.csv").read_text().splitlines())}
    for more in ((), ("--at-random",)):
        suggested = json.loads(run("suggest", folder / "m.onnx", folder / "test.csv", "--json", *more).stdout)
        assert {row["text"] for row in suggested["rows"]} <= texts
    clusters = json.loads(run("clusters", folder / "m.onnx", folder / "test.csv", "--json").stdout)
    assert {example["text"] for one in clusters["clusters"] for example in one["examples"]} <= texts


def test_a_counterfactual_leaves_the_columns_as_they_are(folder: Path) -> None:
    classifier = Classifier.load(folder / "m.onnx")
    row = {"text": "refund there repair hello", "price": "27"}
    found = counterfactual(classifier, classifier.explain(row).row).found
    assert found is not None
    assert found.score == pytest.approx(classifier.predict({**row, "text": found.text}).score, abs=1e-5)


def test_other_models_of_the_rows_may_read_other_columns(folder: Path, tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    for name, columns in (("one", ["product"]), ("two", ["price"]), ("three", [])):
        options = [part for column in columns for part in ("--column", column)]
        given = (*options, "--vectors", "none", "--quiet")
        run("train", folder / "train.csv", "--output", others / f"{name}.onnx", *given)
    asked = ("explain", folder / "m.onnx", "help", "--column", "product=lamp", "--stability", others, "--json")
    assert json.loads(run(*asked).stdout)["evidence"]["stability"]["models"] == 4


def test_a_training_with_columns_goes_on_after_a_kill_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    output, options = tmp_path / "m.onnx", ("--column", "*", "--vectors", "none", "--quiet")
    asked = ("train", folder / "train.csv", "--output", output, *options, "--state", tmp_path / "state")
    assert run(*asked).exit_code == 0
    assert output.read_bytes() == (folder / "m.onnx").read_bytes()


def test_how_answers_came_about_is_no_column_of_a_file_of_answers(folder: Path, tmp_path: Path) -> None:
    rows = [(*map(str, row), str(i), "suspect") for i, row in enumerate(rows_of(1, 60))]
    data = write_rows(tmp_path / "rows.csv", [(*HEADER, "row", "chosen"), *rows])
    names = [column["name"] for column in json.loads(run("check", data, "--column", "*", "--json").stdout)["columns"]]
    assert names == [name for name in HEADER if name not in ("text", "label")]
    write_rows(data, [(*HEADER, "row", "chosen"), *((*row[:-1], "yes") for row in rows)])  # seats, say
    names = [column["name"] for column in json.loads(run("check", data, "--column", "*", "--json").stdout)["columns"]]
    assert names[-2:] == ["row", "chosen"]


def test_few_held_out_rows_cannot_tell_what_columns_bring(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows.csv", [HEADER, *rows_of(1, 40)])
    shown = run("train", data, "--output", tmp_path / "m.onnx", "--column", "price", "--vectors", "none").stdout
    assert "Columns left out, because what they bring cannot be judged by 40 held-out rows." in shown
    assert not Classifier.load(tmp_path / "m.onnx").info.columns


def test_the_same_rows_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    options = ("--column", "product", "--column", "price:number", "--column", "opened", "--column", "noise")
    again = tmp_path / "again.onnx"
    run("train", folder / "train.csv", "--output", again, *options, "--vectors", "none", "--quiet")
    assert again.read_bytes() == (folder / "m.onnx").read_bytes()


def test_a_category_whose_values_are_mostly_numbers_is_pointed_out(tmp_path: Path) -> None:
    rows = [(f"text {i}", "ab"[i % 2], "unknown" if i % 4 == 0 else f"{i}.5") for i in range(40)]
    data = write_rows(tmp_path / "rows.csv", [("text", "label", "size"), *rows])
    assert (
        "75% of its values are numbers: size:number reads them as such" in run("check", data, "--column", "size").output
    )
    for asked in ("size:category", "size:number"):
        assert "of its values are numbers" not in run("check", data, "--column", asked).output


def test_what_tells_the_label_by_itself_is_told_before_training_and_by_check(folder: Path, tmp_path: Path) -> None:
    rows = [(*row, f" {row[-1]}ed ") for row in rows_of(3)]
    data = write_rows(tmp_path / "rows.csv", [(*HEADER, "outcome"), *rows])
    said = "The column 'outcome' alone gives away the label of 100% of the rows"
    trained = run("train", data, "--column", "*", "--output", tmp_path / "m.onnx", "--vectors", "none")
    assert said in trained.stderr
    assert "The column 'noise'" not in trained.stderr
    checked = json.loads(run("check", data, "--column", "*", "--json").stdout)["columns"]
    assert [(column["name"], column["kind"], bool(column["warnings"])) for column in checked] == [
        ("product", "category", True),
        ("price", "number", False),
        ("opened", "date", False),
        ("noise", "number", False),
        ("outcome", "category", True),
    ]
    assert checked[1]["missing"] > 0
    shown = run("check", data, "--column", "price", "--column", "outcome").stdout
    assert "Column price (number with decimal commas):" in shown
    assert said in shown
    assert "No row has the column 'colour'" in fail(3, "check", data, "--column", "colour")


def test_drift_tells_of_columns_that_are_not_as_they_were(folder: Path, tmp_path: Path) -> None:
    rows = [(text, "Toaster", f"{1000 + i}", *rest) for i, (text, _, _, *rest) in enumerate(rows_of(5, 100))]
    rows += [(text, "", "none", *rest) for text, _, _, *rest in rows_of(6, 100)]
    data = write_rows(tmp_path / "new.csv", [HEADER, *rows])
    found = json.loads(run("drift", folder / "m.onnx", data, "--json").stdout)["columns"]
    assert [(column["name"], column["missing"], column["strange"]) for column in found] == [
        ("product", 0.5, 0.5),
        ("price", 0.5, 0.5),
    ]
    assert 0 < found[1]["missing_before"] < 0.2
    assert all(column["lost"] > 0.8 for column in found)
    shown = run("drift", folder / "m.onnx", data).stdout
    assert "new or out of range" in shown
    assert "column product much, column price much." in shown.replace("\n", " ")
    assert run("drift", folder / "m.onnx", data, "--fail-above", "0.5").exit_code == 1
    # Of two rows one may be strange by chance.
    few = write_rows(tmp_path / "few.csv", [HEADER, rows[0], rows_of(7, 1)[0]])
    assert run("drift", folder / "m.onnx", few, "--fail-above", "0.25").exit_code == 0
    same = json.loads(run("drift", folder / "m.onnx", folder / "train.csv", "--json").stdout)["columns"]
    assert all(column["strange"] == 0 for column in same)


def test_a_part_of_a_date_that_tells_the_label_is_a_warning_of_its_column(tmp_path: Path) -> None:
    rows = [(f"word{i}", f"2024-05-{6 + i % 2:02}", ["a", "b"][i % 2]) for i in range(80)]
    data = write_rows(tmp_path / "rows.csv", [("text", "opened", "label"), *rows])
    (opened,) = json.loads(run("check", data, "--column", "opened", "--json").stdout)["columns"]
    assert any("The column 'opened (weekday)' alone gives away" in said for said in opened["warnings"])


def test_every_column_is_none_of_the_labels_where_each_has_its_own(tmp_path: Path) -> None:
    rows = [(row[0], row[1], str(int(row[5] == "refund")), str(int(row[5] == "repair"))) for row in rows_of(1, 120)]
    data = write_rows(tmp_path / "rows.csv", [("text", "product", "tag_refund", "tag_repair"), *rows])
    asked = ("--column", "*", "--label-columns", "tag_*")
    trained = run("train", data, "--output", tmp_path / "m.onnx", "--vectors", "none", *asked)
    assert "Columns beside the text: product (category, 2 values)." in trained.stderr
    assert [column.name for column in Classifier.load(tmp_path / "m.onnx").info.columns] == ["product"]


def test_inspect_shows_curves_and_tables(folder: Path) -> None:
    shown = run("inspect", folder / "m.onnx").stdout
    assert "product (category), price (number); left out: opened, noise" in shown
    plain = json.loads(run("inspect", folder / "m.onnx", "--json").stdout)
    price, product = plain["column_effects"]
    assert (price["name"], price["kind"], product["kind"]) == ("price", "curve", "table")
    refund = [added["refund"] for added in price["added"]]
    assert refund[0] > refund[-2]
    classifier = Classifier.load(folder / "m.onnx")
    found = classifier.explain({"text": "", "product": "phone"}).cells[1]
    phone = product["added"][product["values"].index("phone")]
    assert list(phone.values()) == pytest.approx(found.contributions.tolist())


def test_a_model_with_columns_is_compared_with_one_without(folder: Path, tmp_path: Path) -> None:
    run("train", folder / "train.csv", "--output", tmp_path / "text.onnx", "--vectors", "none", "--quiet")
    for pair in ((folder / "m.onnx", tmp_path / "text.onnx"), (tmp_path / "text.onnx", folder / "m.onnx")):
        found = json.loads(run("compare", *pair, folder / "test.csv", "--json").stdout)
        for path, accuracy in zip(pair, (found["accuracy"]["before"], found["accuracy"]["after"]), strict=True):
            alone = json.loads(run("evaluate", path, folder / "test.csv", "--json").stdout)
            assert accuracy == pytest.approx(alone["accuracy"])
        rows = [(row[0], row[1], row[-1]) for row in rows_of(7, 9)]
        odd = write_rows(tmp_path / "odd.csv", [("text", "Product", "label"), *rows])
        assert f"{odd} has the column 'Product', and {folder / 'm.onnx'} reads 'product'" in fail(
            3, "compare", *pair, odd
        )


@pytest.mark.parametrize("command", ["report", "drift", "inspect"])
def test_what_is_shown_of_rows_is_their_text(folder: Path, tmp_path: Path, command: str) -> None:
    page = tmp_path / "page.html"
    options = {
        "report": (folder / "m.onnx", folder / "test.csv", "--output", page),
        "drift": (folder / "m.onnx", folder / "test.csv", "--before", folder / "train.csv"),
        "inspect": (folder / "m.onnx", "--evidence", folder / "test.csv", "--html", page),
    }[command]
    shown = run(command, *options).stdout + (page.read_text() if page.exists() else "")
    for mark in ("\x1e", "\x1f", "\u241e", "\u241f"):
        assert mark not in shown


@pytest.mark.parametrize(
    ("code", "options", "said"),
    [
        (3, ("--column", "colour"), "has no column 'colour'"),
        (3, ("--column", "label"), "The column 'label' is that of text, label or weight, or named twice"),
        (3, ("--column", "product:number"), "The column 'product' holds no number; the first value is"),
        (3, ("--column", "product:date"), "The column 'product' holds no date that is understood"),
        (2, ("--column", ""), "A column beside the text needs a name"),
        (2, ("--column", "product", "--head", "prototypes"), "Prototypes read texts alone; leave the columns out"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_in_a_sentence(
    folder: Path, tmp_path: Path, code: int, options: tuple[str, ...], said: str
) -> None:
    model = tmp_path / "m.onnx"
    assert said in fail(code, "train", folder / "train.csv", "--output", model, *options, "--quiet")
    assert not model.exists()


def test_a_column_that_the_model_does_not_read_is_told(folder: Path) -> None:
    said = fail(2, "explain", folder / "m.onnx", "help", "--column", "colour=red")
    assert "The model reads no column 'colour' beside the text; it reads 'product' and 'price'" in said
    assert "has no value; write NAME=VALUE" in fail(2, "explain", folder / "m.onnx", "help", "--column", "product")


def test_a_report_ranks_columns_and_judges_the_rows_of_each_category(folder: Path) -> None:
    report = json.loads(succeed("report", folder / "m.onnx", folder / "test.csv", "--json"))
    assert {one["name"] for one in report["slices"] if one["kind"] == "product"} >= {"phone", "lamp"}
    words = [term["text"] for label in report["evidence"]["labels"] for term in label["words_for"]]
    assert {"product = phone", "product = lamp"} <= set(words)
    reasons = {word for error in report["surest_errors"] for word in error["words"]}
    assert reasons & {"product = phone", "product = lamp"}


def test_the_table_of_a_lexicon_ends_with_curves_and_tables_and_gives_its_words_back(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("please\nhello\n", encoding="utf-8")
    succeed("lexicon", folder / "m.onnx", tmp_path / "words.txt", "--output", tmp_path / "table.csv")
    table = read_rows(tmp_path / "table.csv")
    columns = {row["term"]: row for row in table if row["kind"] == "column"}
    for effect in column_effects(Classifier.load(folder / "m.onnx")):
        for value, added in zip(effect.values, effect.added[:, 0].tolist(), strict=True):
            assert float(columns[named_cell(effect.name, value)]["refund"]) == pytest.approx(added, abs=1e-4)
    succeed("lexicon", folder / "m.onnx", tmp_path / "table.csv", "--output", tmp_path / "again.csv")
    assert read_rows(tmp_path / "again.csv") == table


def test_a_mixing_layer_answers_with_columns_too(folder: Path, tmp_path: Path) -> None:
    given = ("--column", "product", "--mixing", "pool", "--epochs", "1")
    succeed("train", folder / "train.csv", "--output", tmp_path / "m.onnx", *given)
    model = Classifier.load(tmp_path / "m.onnx")
    scores = {product: model.predict({"text": "hm", "product": product}).probabilities for product in ("phone", "lamp")}
    assert abs(scores["phone"] - scores["lamp"]).max() > 0.1


def test_a_file_without_the_columns_is_answered_and_that_is_told(folder: Path, tmp_path: Path) -> None:
    write_rows(tmp_path / "plain.csv", [("text", "label"), ("please help", "refund"), ("hm", "repair")])
    told = f"{tmp_path / 'plain.csv'} has no column 'product' and 'price', which the model reads beside the text"
    for given in (
        ("predict", folder / "m.onnx", tmp_path / "plain.csv", "--output", tmp_path / "answers.csv"),
        ("evaluate", folder / "m.onnx", tmp_path / "plain.csv"),
        ("inspect", folder / "m.onnx", "--evidence", tmp_path / "plain.csv"),
    ):
        assert told in run(*given).stderr
    write_rows(tmp_path / "rows.jsonl", [])
    (tmp_path / "rows.jsonl").write_text('{"text": "hm"}\n{"text": "hm", "product": "lamp"}\n', encoding="utf-8")
    answered = run("predict", folder / "m.onnx", tmp_path / "rows.jsonl", "--output", tmp_path / "answers.jsonl")
    assert "has no column" not in answered.stderr
    assert "rows.jsonl begins with rows without 'price', which the model reads beside the text" in answered.stderr


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_a_column_of_nearly_the_right_name_is_refused_wherever_rows_come_from(
    folder: Path, tmp_path: Path, name: str
) -> None:
    rows = [{"text": "please help", "label": "refund", "Product": "lamp", "price": "3"}]
    with open_writer(tmp_path / name, "jsonl" if name.endswith("l") else "csv", [*rows[0]], []) as writer:
        writer.write([Row(1, row) for row in rows], [{} for _ in rows])
    told = f"{tmp_path / name} has the column 'Product', and the model reads 'product': rename it, or add an empty"
    for command in ("evaluate", "drift", "report"):
        assert told in fail(3, command, folder / "m.onnx", tmp_path / name)
    assert told in fail(3, "predict", folder / "m.onnx", tmp_path / name, "--output", tmp_path / "answers.jsonl")


def test_the_column_of_the_label_is_no_misspelling(tmp_path: Path) -> None:
    rows = [(text, product, label) for text, product, *_, label in rows_of(8)]
    data = write_rows(tmp_path / "rows.csv", [("text", "label2", "label"), *rows])
    succeed("train", data, "--column", "label2:category", "--vectors", "none", "--output", tmp_path / "m.onnx")
    bare = write_rows(tmp_path / "bare.csv", [("text", "label"), *((text, label) for text, _, label in rows)])
    for command in ("evaluate", "drift"):
        result = run(command, tmp_path / "m.onnx", bare)
        assert (result.exit_code, "has no column 'label2', which the model reads" in result.stderr) == (0, True)


def test_texts_that_are_empty_are_counted(folder: Path, tmp_path: Path) -> None:
    rows = [("text", "label", "product", "price"), *[("", "refund", "lamp", "3"), (" ", "repair", "lamp", "3")] * 20]
    path = write_rows(tmp_path / "rows.csv", rows)
    assert "Note: 40 texts are empty." in run("evaluate", folder / "m.onnx", path).stderr
    assert "Note: 40 texts are empty." in run("drift", folder / "m.onnx", path).stderr
    assert "Note: 40 texts are empty." in run("predict", folder / "m.onnx", path, "--output", tmp_path / "a.csv").stderr


def test_values_that_are_new_to_the_model_are_told_where_most_are(folder: Path, tmp_path: Path) -> None:
    rows = [*read_rows(folder / "test.csv")]
    for count in (len(rows), 4):
        changed = [row | {"product": f"the {row['product']}"} if i < count else row for i, row in enumerate(rows)]
        write_rows(tmp_path / "new.csv", [tuple(rows[0]), *[tuple(row.values()) for row in changed]])
        for call in (("evaluate",), ("predict", "--output", tmp_path / "out.csv")):
            said = run(*call, folder / "m.onnx", tmp_path / "new.csv").stderr
            assert ("values of 'product' are new to the model, such as 'the " in said) == (count == len(rows))


def test_values_that_are_not_understood_are_told_with_the_first_of_them(folder: Path, tmp_path: Path) -> None:
    rows = [*read_rows(folder / "test.csv")]
    for i, row in enumerate(rows):
        row["price"] = f"about {row['price']}" if i % 3 == 0 else row["price"]
    odd = sum(i % 3 == 0 for i in range(len(rows)))
    write_rows(tmp_path / "odd.csv", [tuple(rows[0]), *[tuple(row.values()) for row in rows]])
    told = f"In {odd} rows the column 'price' holds what is not understood and counts as missing, such as 'about "
    assert told in run("evaluate", folder / "m.onnx", tmp_path / "odd.csv").stderr
    assert told in run("predict", folder / "m.onnx", tmp_path / "odd.csv", "-o", tmp_path / "out.csv").stderr
    assert "not understood" not in run("evaluate", folder / "m.onnx", folder / "test.csv").stderr
    assert told in succeed("check", tmp_path / "odd.csv", "--column", "price:number").replace("\n", " ")
    checked = json.loads(succeed("check", tmp_path / "odd.csv", "--column", "price:number", "--json"))["columns"][0]
    assert (checked["not_understood"], checked["missing"] + odd <= len(rows)) == (odd, True)
    trained = ("train", tmp_path / "odd.csv", "--column", "price:number", "--epochs", "1", "--vectors", "none")
    assert told in run(*trained, "-o", tmp_path / "m.onnx").stderr


def test_rows_that_differ_in_a_column_are_no_copies_and_their_labels_are_judged_by_it(tmp_path: Path) -> None:
    draw = random.Random()
    texts = [f"{name} attached" for name in ("invoice", "receipt", "order", "note", "letter", "bill")]
    amounts = [cents / 100 for cents in draw.sample(range(100, 500_000), 300)]
    labelled = [(draw.choice(texts), f"{amount:.2f}", "manager" if amount > 2000 else "clerk") for amount in amounts]
    wrong = [i for i in range(0, 300, 25) if abs(amounts[i] - 2000) > 500]
    other = {"manager": "clerk", "clerk": "manager"}
    for i in wrong:
        text, amount, label = labelled[i]
        labelled[i] = (text, amount, other[label])
    data = write_rows(tmp_path / "rows.csv", [("text", "amount", "label"), *labelled])
    audited = ("check", data, "--column", "amount", "--labels", "--suspects", tmp_path / "suspects.csv")
    said = run(*audited, "--write", tmp_path / "clean.csv").stdout
    assert "copies" not in said
    assert read_rows(tmp_path / "clean.csv") == read_rows(data)
    suspects = read_rows(tmp_path / "suspects.csv")
    found = {row["amount"] for row in suspects}
    assert len(found & {labelled[i][1] for i in wrong}) >= len(wrong) // 2
    assert 2 * sum("amount = " in row["because_of"] for row in suspects) > len(suspects)
    assert "300 rows are copies" not in said
    plain = succeed("check", data)
    assert "294 rows are copies of an earlier text" in plain
    # What is told of rows is told of text and columns.
    labelled[0], labelled[1] = ("the same", "1", "a"), ("the same", "1", "b")
    twice = write_rows(tmp_path / "twice.csv", [("text", "amount", "label"), *labelled])
    said = succeed("check", twice, "--column", "amount", "--valid", twice)
    assert "nobody who sees only the text and 'amount' is right on more than 99.7%" in said
    assert "300 of 300 validation rows also appear in the training rows" in said


def test_no_training_with_columns_goes_on_from_another_and_none_from_it(folder: Path, tmp_path: Path) -> None:
    given = ("train", folder / "train.csv", "--output", tmp_path / "m.onnx", "--quiet")
    fresh = (*given, "--epochs", "1", "--vectors", "none")
    succeed(*fresh, "--column", "product", "--state", tmp_path / "columns")
    succeed(*fresh, "--state", tmp_path / "text")
    said = fail(3, *given, "--from", tmp_path / "columns")
    assert "it has read columns beside the text; train on all rows again" in said
    said = fail(2, *given, "--from", tmp_path / "text", "--column", "product")
    assert "A training that continues another reads only texts" in said


def test_a_name_of_a_column_may_hold_the_sign_that_parts_it_from_its_value(tmp_path: Path) -> None:
    rows = [(f"hm {WORDS[i % 23]}", "a" if i % 2 else "b", "x" if i % 2 or i % 3 == 0 else "y") for i in range(240)]
    write_rows(tmp_path / "train.csv", [("text", "k=v", "label"), *rows])
    succeed("train", tmp_path / "train.csv", "--column", "k=v", "--output", tmp_path / "m.onnx", "--vectors", "none")
    assert "k=v = a" in succeed("explain", tmp_path / "m.onnx", "hm", "--column", "k=v=a")
    twice = ("explain", tmp_path / "m.onnx", "hm", "--column", "k=v=a", "--column", "k=v=b")
    assert "--column k=v is given twice" in fail(2, *twice)


@pytest.mark.parametrize("columns", ["product", [1], ["*"], ["price:number", "price:date"]])
def test_python_says_what_columns_must_be(columns: Any) -> None:
    with pytest.raises(ConfigError, match=r"must be a list of names|name the columns|as two kinds"):
        textcls.train([{"text": "a", "product": "b"}] * 9, ["x", "y", "z"] * 3, "never.onnx", columns=columns)
    assert not Path("never.onnx").exists()


def test_a_column_that_tells_the_label_is_told_where_shortcuts_are_looked_for(folder: Path, tmp_path: Path) -> None:
    rows = [
        (text, "Phone" if label == "refund" else "lamp", price, *rest, label)
        for text, _, price, *rest, label in rows_of(3)
    ]
    write_rows(tmp_path / "told.csv", [HEADER, *rows])
    line = "The column 'product' alone gives away the label of 100% of the rows"
    found = json.loads(succeed("inspect", folder / "m.onnx", "--evidence", tmp_path / "told.csv", "--json"))
    assert [said.startswith(line) for said in found["told_by"]] == [True]
    assert line in succeed("inspect", folder / "m.onnx", "--evidence", tmp_path / "told.csv").replace("\n", " ")
    assert line in succeed("report", folder / "m.onnx", tmp_path / "told.csv").replace("\n", " ")
    page = tmp_path / "page.html"
    succeed("inspect", folder / "m.onnx", "--evidence", tmp_path / "told.csv", "--html", page)
    assert "The column &#x27;product&#x27; alone" in page.read_text(encoding="utf-8")
    write_rows(tmp_path / "text.csv", [HEADER, *[(row[0], "", "", *row[3:]) for row in rows]])
    found = json.loads(succeed("inspect", folder / "m.onnx", "--evidence", tmp_path / "text.csv", "--json"))
    assert "told_by" not in found


def test_a_plot_is_all_that_is_told(folder: Path, tmp_path: Path) -> None:
    said = fail(2, "inspect", folder / "m.onnx", "--plot", tmp_path / "columns.svg", "--json")
    assert "--json and --plot cannot be combined; give one of them." in said
    assert not (tmp_path / "columns.svg").exists()


def test_columns_of_lists_and_objects_are_left_out_of_all_columns_and_told(tmp_path: Path) -> None:
    rows = [{"text": f"{i} a", "label": "xy"[i % 2], "meta": None if i % 3 else {"k": i}, "n": i} for i in range(9)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("check", tmp_path / "rows.jsonl", "--column", "*", "--json")
    assert [column["name"] for column in json.loads(result.stdout)["columns"]] == ["n"]
    assert "Lists and objects are left out of --column '*': 'meta'." in result.stderr
