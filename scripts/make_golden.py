"""Freeze a small model and its answers in tests/golden, so that later versions keep reading and answering alike.

    python scripts/make_golden.py v2
    python scripts/make_golden.py v2_prototypes

Run it once for each format version, never again for the same one. It writes model_v2.onnx and answers_v2.json: of one
label a text for version 1, of several in version 2, in version 3 of machines of one label against the rest, in version
4 with columns beside the text; and of version 2 one of prototypes, which has been taught a label. tokens_v1.json,
features_v1.json and texts_v1.json were written by hand, from the rules, and stay as they are.
"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from textcls import Classifier, Prediction
from textcls.data import read_labelled
from textcls.data.column_kinds import cells_of_rows, columns_of
from textcls.model.classifier import Text
from textcls.model.teaching import teach, write
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline.training import train

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
ROWS: Final = 150
TAUGHT: Final = "returns"
EXAMPLES: Final = 5
GREETINGS: Final = ("Good morning", "Hello", "Thanks", "Many thanks", "Have a nice day", "Cheers")
NAMES: Final = ("Anna", "everyone", "team", "Joe", "you lovely people")
ENDS: Final = ("have a good weekend!", "talk soon.", "all is well here.", "the weather is fine.")
TEXTS = (
    "",
    "refund",
    "My card was charged TWICE!!",
    "where is my parcel? ordered 3 weeks ago \U0001f621",
    "No puedo iniciar sesión en mi cuenta",
    "\u6ce8\u6587\u306e\u30ad\u30e3\u30f3\u30bb\u30eb\u3092\u304a\u9858\u3044\u3057\u307e\u3059",
    "\uc571\uc774 \uacc4\uc18d \uaebc\uc838\uc694",
    "naïve नमस्ते สวัสดี مُحَمَّد",
    "a\u00a0b\u2003c\u200bd\te",
    "the lamp keeps flickering " * 30,
)
TEXTS_OF_SEVERAL: Final = (
    *TEXTS,
    "I forgot my password and want to cancel my subscription",
    "Good morning team, all is well here.",
)


PRODUCTS: Final = ("Lamp", "lamp XL", "Phone", "Sofa")
ROWS_WITH_COLUMNS: Final = (
    *TEXTS[:3],
    {"text": "refund", "product": "  LAMP xl ", "price": "1.234,50", "opened": "2024-05-31"},
    {"text": "where is my parcel?", "product": "chair", "price": "12", "opened": "soon"},
    {"text": "", "product": "phone", "price": None, "opened": "2024-05-13T12:00"},
    {"text": "the lamp keeps flickering " * 30, "product": "Sofa", "price": 42},
)


def main(version: str) -> None:
    path = GOLDEN / f"model_{version}.onnx"
    config = TrainConfig(model=ModelConfig(dim=8), max_tokens=64, vectors="none")
    if version.endswith("_prototypes"):
        _prototypes(path, config)
    elif version == "v3":
        train(_several_labels(), path, replace(config, model=None, impl="one-vs-rest"))
    elif version == "v4":
        train(_with_columns(), path, config)
    else:
        train(_one_label() if version == "v1" else _several_labels(), path, config)
    texts: Sequence[Text] = (
        TEXTS_OF_SEVERAL if version in ("v2", "v3") else ROWS_WITH_COLUMNS if version == "v4" else TEXTS
    )
    found = Classifier.load(path).predict(texts, explain=True)
    answers = [_frozen(text, answer) for text, answer in zip(texts, found, strict=True)]
    (GOLDEN / f"answers_{version}.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


def _prototypes(path: Path, config: TrainConfig) -> None:
    """Train on all labels but one, and teach that one by some examples; the file keeps the texts of support rows."""
    rows = _one_label()
    pairs = list(zip(rows.texts, rows.labels, strict=True))
    others = [(text, label) for text, label in pairs if label != TAUGHT]
    given = LabelledTexts(texts=[text for text, _ in others], labels=[label for _, label in others])
    train(given, path, replace(config, head="prototypes", keep_texts=True))
    examples = [text for text, label in pairs if label == TAUGHT][:EXAMPLES]
    write(teach(Classifier.load(path), path.read_bytes(), {TAUGHT: examples}), path)


def _one_label() -> LabelledTexts:
    rows = read_labelled(ROOT / "textcls" / "demo" / "support_tickets.csv", ["text"], "label")
    return LabelledTexts(texts=rows.texts[:ROWS], labels=rows.labels[:ROWS])


def _with_columns() -> LabelledTexts:
    """Texts with a product, a price and a day, which depend on the label of most rows; some rows lack them."""
    rows = _one_label()
    number = {label: i for i, label in enumerate(sorted(set(rows.labels)))}
    values: dict[str, list[Any]] = {"product": [], "price": [], "opened": []}
    for i, label in enumerate(rows.labels):
        of = number[label] if i % 4 else i % 7
        values["product"].append(None if i % 11 == 0 else PRODUCTS[of % len(PRODUCTS)])
        values["price"].append("?" if i % 13 == 0 else f"{10 * of + i % 10},50")
        values["opened"].append(None if i % 17 == 0 else f"2024-05-{1 + 4 * of + i % 3:02}T{8 + of:02}:30")
    columns = columns_of(dict.fromkeys(values), values, [])
    return replace(rows, columns=columns, cells=cells_of_rows(columns, values))


def _several_labels() -> LabelledTexts:
    """Each text with its label, texts joined in twos with the labels of both, and greetings without any."""
    rows = read_labelled(ROOT / "textcls" / "demo" / "support_tickets.csv", ["text"], "label")
    pairs = list(zip(rows.texts, rows.labels, strict=True))
    one, other = pairs[: 2 * ROWS], pairs[2 * ROWS : 4 * ROWS]
    given: list[tuple[str, dict[str, float]]] = [(text, {label: 1.0}) for text, label in one]
    given += [(f"{a} {b}", {x: 1.0, y: 1.0}) for (a, x), (b, y) in zip(one, other, strict=True)]
    given += [(f"{greeting} {name}, {end}", {}) for greeting, name, end in product(GREETINGS, NAMES, ENDS)]
    return LabelledTexts(texts=[text for text, _ in given], label_sets=[labels for _, labels in given])


def _frozen(text: Text, answer: Prediction) -> dict[str, Any]:
    explanation = answer.explanation
    assert explanation is not None
    return (
        {
            "text": text,
            **({"columns": [cell.contributions.tolist() for cell in explanation.cells]} if explanation.cells else {}),
            "probabilities": answer.probabilities.tolist(),
            "logits": explanation.logit_values.tolist(),
            "tokens": [[t.start, t.end, t.attention, *t.contributions.values()] for t in explanation.tokens],
            "truncated": answer.truncated,
        }
        | _more(answer)
        | ({"assigned": answer.assigned, "decision": answer.decision} if answer.several else {})
    )


def _more(answer: Prediction) -> dict[str, Any]:
    nearest = [] if answer.explanation is None else answer.explanation.nearest()
    return {"support": [support.to_json() for support in nearest]} if nearest else {}


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) != 1 or not re.fullmatch(r"v[1-9][0-9]*(_prototypes)?", given[0]):
        sys.exit("One argument is needed, the version of the format, such as v2.")
    main(given[0])
