"""How well explanations hold up on test sets, beside those of other methods, and attention taught by people's marks.

    pip install -r benchmarks/requirements.txt '.[torch]'
    python benchmarks/explanations.py DATA/sst2 DATA/imdb DATA/ag_news DATA/hatexplain

A set is a folder with train.csv and test.csv. The default model is trained on train.csv and explained on rows of
test.csv; where there is a file of rationales of the test rows (`RATIONALES`), agreement with people is measured, too.
With valid.csv and rationales_valid.jsonl, attention is also taught: by all rows of train.csv, which have no marks, and
those of valid.csv, which have; beside it, the same rows without marks. Written are .json and .md.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, Final

import click
import numpy as np

from common import FOLDERS, ROOT, about, data_sets, headline, read, train_ours
from faithfulness import plausibility
from faithfulness.benchmark import explain_benchmark
from faithfulness.plausibility import Rationale
from faithfulness.rationales import read_rationales
from runner import markdown_table, mean_and_spread
from textcls import Classifier
from textcls.evaluation import metrics
from textcls.model import tokenizer
from textcls_training.config.settings import TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.data.rationales import Spans
from textcls_training.pipeline.training import train

RATIONALES: Final = ("rationales_test.jsonl", "word_labels_test.jsonl")
SEEDS: Final = 3
# What a set costs grows with the square of its tokens: of long texts fewer are explained.
MOST_TEXTS, MOST_TOKENS = 500, 30_000
FIGURES: Final = {
    "comprehensiveness": ("delete", "comprehensiveness"),
    "sufficiency (lower is better)": ("delete", "sufficiency"),
    "tau with leave-one-out": ("delete", "loo_tau"),
    "comprehensiveness, masked": ("mask", "comprehensiveness"),
    "sufficiency, masked": ("mask", "sufficiency"),
}
AGREEMENT: Final = {"AUPRC": "auprc", "token F1": "token_f1", "IOU F1": "iou_f1"}
ROBUSTNESS: Final = {
    "typo": "typo",
    "synonym": "synonym",
    "text twice": "duplicate",
    "another seed": "other_model",
}
SIGNS: Final = {"better": " (+)", "worse": " (-)", "not worse": " (=)", None: ""}
NOTES: Final = """\
Deleted and masked: how a token is removed; training has seen neither. Comprehensiveness and sufficiency are AOPC over
1, 5, 10, 20 and 50 % of the tokens (ERASER); tau is Kendall's. (+), (=) and (-): the model's own contributions are
better than this method, not worse, or worse, by a paired bootstrap (95 %) over the texts. Calls: how often the model is
asked to explain one text; ms: milliseconds of one thread.
"""


def enough(texts: Sequence[str]) -> int:
    """Return how many of these texts are explained."""
    tokens = mean(len(tokenizer.tokenize(text)) for text in texts)
    return min(MOST_TEXTS, int(MOST_TOKENS / tokens))


def explain(folder: Path, model: Path, other: Path) -> dict[str, Any]:
    """Measure the explanations of `model` on the test set in `folder`."""
    test = read(folder / "test.csv")
    chosen = sorted(np.random.default_rng(0).permutation(len(test.texts))[: enough(test.texts)].tolist())
    found = next((folder / name for name in RATIONALES if (folder / name).is_file()), None)
    marks = None
    if found is not None:
        rows = read_rationales(found)
        # What names no class is for the label of the row.
        of_label = {row: replace(mark, label=mark.label or test.labels[row]) for row, mark in rows.items()}
        marks = [of_label.get(row) for row in chosen]
    return explain_benchmark(
        Classifier.load(model),
        [test.texts[row] for row in chosen],
        removals=("delete", "mask"),
        rationales=marks,
        other=Classifier.load(other),
    ).to_json()


def cells(result: dict[str, Any], figures: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield a row of figures for each method."""
    verdicts = {(one["other"], one["group"], one["figure"]): one["verdict"] for one in result["comparisons"]}
    for method in result["methods"]:
        row = [method["name"]]
        for group, figure in figures:
            value = method["figures"].get(group, {}).get(figure, {}).get("value")
            sign = SIGNS[verdicts.get((method["name"], group, figure))]
            row.append("-" if value is None else f"{value:.3f}{sign}")
        yield row


def tables(name: str, result: dict[str, Any]) -> list[str]:
    """Return the lines of the tables of one set."""
    agreement = {title: ("plausibility", figure) for title, figure in AGREEMENT.items() if result["rationales"]}
    robustness = {title: ("robustness", figure) for title, figure in ROBUSTNESS.items()}
    faithful = [*cells(result, [*FIGURES.values(), *agreement.values()])]
    costs = [[f"{method['calls']:.0f}", f"{method['milliseconds']:.2f}"] for method in result["methods"]]
    rows = [[row[0], *cost, *row[1:]] for row, cost in zip(faithful, costs, strict=True)]
    lines = ["", f"## {name}", ""]
    about_texts = f"{result['texts']:,} test texts of {result['tokens']:.0f} tokens in the mean"
    if result["rationales"]:
        about_texts += f", {result['rationales']['used']:,} of them with marks of people"
    lines += [f"{about_texts}.", "", *markdown_table(("method", "calls", "ms", *FIGURES, *agreement), rows)]
    title = "Rank correlation with the explanation of the changed text, and with that of a model of another seed:"
    return [*lines, "", title, "", *markdown_table(("method", *robustness), cells(result, [*robustness.values()]))]


def spans(rationale: Rationale) -> Spans:
    """Return where the marked tokens stand in the text, which is the tokens joined by spaces."""
    ends = np.cumsum([len(token) + 1 for token in rationale.tokens]).tolist()
    marked = zip(rationale.tokens, ends, rationale.gold, strict=True)
    return tuple((end - 1 - len(token), end - 1) for token, end, is_gold in marked if is_gold and token)


def taught(folder: Path) -> dict[str, Any]:
    """Train with and without the marks of valid.csv; return accuracy and AUPRC on all of test.csv, a value a seed."""
    learn, marked, test = (read(folder / name) for name in ("train.csv", "valid.csv", "test.csv"))
    marks = read_rationales(folder / "rationales_valid.jsonl")
    texts, labels = [*learn.texts, *marked.texts], [*learn.labels, *marked.labels]
    none: list[Spans] = [()] * len(learn.texts)
    all_marks = [*none, *(spans(marks[row]) if row in marks else () for row in range(len(marked.texts)))]
    for row, rationale in marks.items():
        if " ".join(rationale.tokens) != marked.texts[row]:
            raise click.ClickException(f"Row {row} of {folder}/valid.csv is not its tokens joined by spaces.")
    gold = read_rationales(folder / "rationales_test.jsonl")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "model.onnx"
        for kind, rationales in (("without marks", None), ("with marks", all_marks)):
            for seed in range(SEEDS):
                train(LabelledTexts(texts=texts, labels=labels, rationales=rationales), model, TrainConfig(seed=seed))
                for name, value in agreement(Classifier.load(model), test.texts, test.labels, gold).items():
                    found.setdefault(kind, {}).setdefault(name, []).append(value)
    return found


def agreement(
    classifier: Classifier, texts: Sequence[str], labels: Sequence[str], gold: dict[int, Rationale]
) -> dict[str, float]:
    """Return accuracy, ECE, and the AUPRC of attention and of evidence for the right label."""
    answers = classifier.predict(texts, explain=True)
    number = {label: i for i, label in enumerate(classifier.labels)}
    report = metrics.report(
        np.array([answer.probabilities for answer in answers]),
        np.array([number[label] for label in labels]),
        classifier.labels,
    )
    scores: dict[str, list[float]] = {"AUPRC of attention": [], "AUPRC of contributions": []}
    for row, rationale in gold.items():
        explanation = answers[row].explanation
        if explanation is None or not any(rationale.gold):
            continue
        aligned = plausibility.align(rationale, texts[row], explanation.spans)
        if aligned is None:
            continue
        for name, of_tokens in zip(scores, (explanation.attention, explanation.evidence(labels[row])), strict=True):
            scores[name].append(plausibility.auprc(aligned.scores(of_tokens.astype(np.float64)), aligned.gold))
    rows = {name: mean(values) for name, values in scores.items()}
    return {"accuracy": 100 * report.accuracy, "macro-F1": 100 * report.macro_f1, "ECE": report.ece} | rows


def taught_table(results: dict[str, Any]) -> list[str]:
    """Return the lines on attention taught by people."""
    names = [*next(iter(results.values()))]
    rows = [
        [kind, *(mean_and_spread(v) if mean(v) > 1 else f"{mean(v):.3f}" for v in figures.values())]
        for kind, figures in results.items()
    ]
    text = f"Attention taught by the marks of valid.csv, on the whole test set, mean of {SEEDS} seeds:"
    return ["", text, "", *markdown_table(("trained", *names), rows)]


def rounded(value: Any) -> Any:
    """Return plain data with numbers of five decimals."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return round(value, 5) if isinstance(value, float) else value


@click.command()
@FOLDERS
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=ROOT / "benchmarks" / "explanations",
    help="Where to write, without suffix.",
)
def main(data: tuple[Path, ...], output: Path) -> None:
    """Measure the explanations of the default model on the test sets in the folders DATA."""
    facts, results = about(), {}
    for name, folder in data_sets(data).items():
        click.echo(name, err=True)
        with tempfile.TemporaryDirectory() as place:
            model, other = Path(place) / f"{name}.onnx", Path(place) / "other.onnx"
            train_ours(folder / "train.csv", model)
            train_ours(folder / "train.csv", other, ["--seed", "1"])
            results[name] = {"explained": explain(folder, model, other)}
        if (folder / "rationales_valid.jsonl").is_file():
            results[name]["taught"] = taught(folder)
    lines = ["# How well explanations hold up", "", headline(facts), "", *NOTES.splitlines()]
    for name, result in results.items():
        lines += tables(name, result["explained"])
        if "taught" in result:
            lines += taught_table(result["taught"])
    figures = rounded(facts | {"sets": results})
    output.with_suffix(".json").write_text(json.dumps(figures) + "\n", encoding="utf-8")
    output.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
