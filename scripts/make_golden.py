"""Freeze a small model and its answers in tests/golden, so that later versions keep reading and answering alike.

    python scripts/make_golden.py v1

Run it once for each format version, never again for the same one. It writes model_v1.onnx and answers_v1.json;
tokens_v1.json, features_v1.json and texts_v1.json were written by hand, from the rules, and stay as they are.
"""

import json
import re
import sys
from pathlib import Path

from textcls import Classifier
from textcls.data import read_labelled
from textcls_training.config.settings import ModelConfig, TrainConfig
from textcls_training.data.labelled_texts import LabelledTexts
from textcls_training.pipeline import train

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden"
ROWS = 150
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


def main(version: str) -> None:
    rows = read_labelled(ROOT / "examples" / "support_tickets.csv", ["text"], "label")
    path = GOLDEN / f"model_{version}.onnx"
    config = TrainConfig(model=ModelConfig(dim=8), max_tokens=64)
    train(LabelledTexts(texts=rows.texts[:ROWS], labels=rows.labels[:ROWS]), path, config)
    answers = []
    for text, answer in zip(TEXTS, Classifier.load(path).predict(TEXTS, explain=True), strict=True):
        explanation = answer.explanation
        assert explanation is not None
        answers.append(
            {
                "text": text,
                "probabilities": answer.probabilities.tolist(),
                "logits": explanation.logit_values.tolist(),
                "tokens": [[t.start, t.end, t.attention, *t.contributions.values()] for t in explanation.tokens],
                "truncated": answer.truncated,
            }
        )
    (GOLDEN / f"answers_{version}.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) != 1 or not re.fullmatch(r"v[1-9][0-9]*", given[0]):
        sys.exit("One argument is needed, the version of the format, such as v2.")
    main(given[0])
