"""A model card as the Hub of Hugging Face reads it: facts in YAML, what it is and how to ask it, then the report.

The form of the facts: https://huggingface.co/docs/hub/model-cards
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from textcls.display.markdown.report import sections
from textcls.display.markdown.tables import escaped, name
from textcls.display.text import percent, plural
from textcls.evaluation.reporting.label_sets import LabelSetModelReport
from textcls.evaluation.reporting.model_report import ModelFile, ModelReport
from textcls.model.artifact import ModelInfo
from textcls.versions.record import held_out_of


def model_card(title: str, found: ModelReport, data: str) -> str:
    """Return the card.

    Args:
        title: how the model is called.
        found: the report.
        data: how the rows of the report are called.
    """
    facts = {"metrics": ["accuracy", "f1"], "model-index": [{"name": title, "results": [_results(found, data)]}]}
    measured = (
        f"All below was measured on {plural(found.rows, 'row')} of {escaped(data)}; on texts of another time or source "
        "it will be less accurate, and too sure of itself."
    )
    return _card(title, facts, [*_what(found.model, measured), "## Results", "", *sections(found)])


def file_card(title: str, file: ModelFile) -> str:
    """Return the card of a model of which there is no report: what its file says of itself.

    Args:
        title: how the model is called.
        file: the model.
    """
    training = file.info.training
    rows, figures = training.get("held_out_rows"), _held_out(file.info)
    summary = "Its file tells of no rows that were held out in its training."
    if figures:
        on = f" on {plural(rows, 'row')}" if isinstance(rows, int) else ""
        summary = f"In its training, held-out rows were answered with {figures}{on}."
    return _card(title, {}, _what(file, f"{summary} On texts of another time or source it will be less accurate."))


def _held_out(info: ModelInfo) -> str:
    """Return the figures of held-out rows, as a sentence lists them."""
    names = {"held_out_accuracy": "accuracy", "held_out_micro_f1": "micro-F1", "held_out_macro_f1": "macro-F1"}
    return ", ".join(f"{names[name]} {percent(value)}" for name, value in held_out_of(info).items())


def _card(title: str, more: Mapping[str, Any], body: Sequence[str]) -> str:
    facts = {
        "library_name": "textcls",
        "pipeline_tag": "text-classification",
        "tags": ["textcls", "onnx", "text-classification"],
        **more,
    }
    # JSON is YAML, too, and needs no package that writes it.
    head = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["---", *head, "---", "", f"# {escaped(title)}", "", *body]).rstrip("\n") + "\n"


def _results(found: ModelReport, data: str) -> dict[str, Any]:
    several = isinstance(found, LabelSetModelReport)
    figures = [
        ("accuracy", "all labels right" if several else "accuracy", found.accuracy.value),
        *([("f1", "micro-F1", found.micro_f1.value)] if isinstance(found, LabelSetModelReport) else []),
        ("f1", "macro-F1", found.macro_f1.value),
        ("ece", "expected calibration error" + " of a label" * several, found.scores.ece),
    ]
    return {
        "task": {"type": "text-classification", "name": "Text classification"},
        "dataset": {"name": data, "type": "private"},
        "metrics": [{"type": kind, "name": what, "value": round(value, 4)} for kind, what, value in figures],
    }


def _what(file: ModelFile, measured: str) -> list[str]:
    """Return what the model is and how to ask it; `measured` says how good it is, and on what."""
    info = file.info
    labels = ", ".join(name(label) for label in info.labels)
    rows = info.training.get("rows")
    trained = f", trained on {plural(rows, 'row')}" if isinstance(rows, int) else ""
    text = info.example or "my card was charged twice"
    given = json.dumps(text, ensure_ascii=False)
    taught = _taught(info)
    # Of several labels a text an answer has those that are assigned.
    shown = "answer.assigned" if info.several else "answer.label, answer.score"
    return [
        f"A text classifier of {plural(len(info.labels), 'label')}{trained}: {labels}. One ONNX file of "
        f"{file.bytes / 1e6:.2f} MB (SHA-256 `{file.sha256}`) that answers raw text with calibrated scores, and says "
        "of each word what it added.",
        "",
        *([f"Taught after its training, and not calibrated: {', '.join(taught)}.", ""] if taught else []),
        "```python",
        "from textcls import Classifier",
        "",
        f"classifier = Classifier.load({json.dumps(file.name)})",
        f"answer = classifier.predict({given}, explain=True)",
        f"print({shown})",
        "```",
        "",
        f"It answers with these labels and no other, and knows the words of its training rows. {measured}",
        "",
    ]


def _taught(info: ModelInfo) -> list[str]:
    """Return the labels that were taught by examples, with how many there were."""
    if info.prototypes is None:
        return []
    counts = map(info.prototypes.taught, range(len(info.labels)))
    return [f"{name(of)} ({plural(count, 'example')})" for of, count in zip(info.labels, counts, strict=True) if count]
