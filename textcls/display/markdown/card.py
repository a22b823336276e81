"""A model card as the Hub of Hugging Face reads it: facts in YAML, what it is and how to ask it, then the report.

The form of the facts: https://huggingface.co/docs/hub/model-cards
"""

import json
from typing import Any

from textcls.display.markdown.report import sections
from textcls.display.markdown.tables import escaped, name
from textcls.display.text import plural
from textcls.reporting.report import ModelReport


def model_card(title: str, found: ModelReport, data: str) -> str:
    """Return the card.

    Args:
        title: how the model is called.
        found: the report.
        data: how the rows of the report are called.
    """
    facts = {
        "library_name": "textcls",
        "pipeline_tag": "text-classification",
        "tags": ["textcls", "onnx", "text-classification"],
        "metrics": ["accuracy", "f1"],
        "model-index": [{"name": title, "results": [_results(found, data)]}],
    }
    # JSON is YAML, too, and needs no package that writes it.
    head = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["---", *head, "---", "", f"# {escaped(title)}", "", *_what(found, data), *sections(found)]) + "\n"


def _results(found: ModelReport, data: str) -> dict[str, Any]:
    figures = (
        ("accuracy", "accuracy", found.accuracy.value),
        ("f1", "macro-F1", found.macro_f1.value),
        ("ece", "expected calibration error", found.scores.ece),
    )
    return {
        "task": {"type": "text-classification", "name": "Text classification"},
        "dataset": {"name": data, "type": "private"},
        "metrics": [{"type": kind, "name": what, "value": round(value, 4)} for kind, what, value in figures],
    }


def _what(found: ModelReport, data: str) -> list[str]:
    info, file = found.model.info, found.model
    labels = ", ".join(name(label) for label in info.labels)
    rows = info.training.get("rows")
    trained = f", trained on {plural(rows, 'row')}" if isinstance(rows, int) else ""
    text = info.example or "my card was charged twice"
    return [
        f"A text classifier of {plural(len(info.labels), 'label')}{trained}: {labels}. One ONNX file of "
        f"{file.bytes / 1e6:.2f} MB (SHA-256 `{file.sha256}`) that answers raw text with calibrated scores, and says "
        "of each word what it added.",
        "",
        "```python",
        "from textcls import Classifier",
        "",
        f"classifier = Classifier.load({json.dumps(file.name)})",
        f"answer = classifier.predict({json.dumps(text, ensure_ascii=False)}, explain=True)",
        "print(answer.label, answer.score)",
        "```",
        "",
        "It answers with these labels and no other, and knows the words of its training rows. All below was measured "
        f"on {plural(found.rows, 'row')} of {escaped(data)}; on texts of another time or source it will be less "
        "accurate, and too sure of itself.",
        "",
        "## Results",
        "",
    ]
