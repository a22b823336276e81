"""Write textcls/model/unicode_v1.json: the frozen character classes and lower-casing of the token rule.

    python scripts/generate_unicode.py > textcls/model/unicode_v1.json

Needs `regex` (for script properties), `onnxruntime` (whose lower-casing is the one that saved models use), and `onnx`
and `numpy` to ask it.
Run it only to start a new version of the token rule: saved models carry the ranges of their own version.
"""

import json
import sys
from collections.abc import Iterable, Iterator

import numpy as np
import onnx
import onnxruntime
import regex
from onnx import TensorProto, helper

UNSPACED = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar")
# The prolonged sound marks are letters of script Common, yet they are written only among kana.
KANA_MARKS = "\u30fc\uff70"
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(members: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for c in members:
        if found and found[-1][1] == c - 1:
            found[-1] = (found[-1][0], c)
        else:
            found.append((c, c))
    return found


def matching(pattern: str) -> set[int]:
    full = regex.compile(pattern)
    return {c for c in CODE_POINTS if full.fullmatch(chr(c))}


def graph_lower() -> Iterator[tuple[int, int]]:
    """What ONNX Runtime's StringNormalizer makes of every code point, where that is not the code point itself."""
    node = helper.make_node(
        "StringNormalizer", ["x"], ["y"], case_change_action="LOWER", is_case_sensitive=1, locale="C.UTF-8"
    )
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph([node], "lower", values[:1], values[1:]),
        opset_imports=[helper.make_opsetid("", 21)],
        ir_version=10,
    )
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    points = CODE_POINTS[1:]
    for point, lowered in zip(
        points, session.run(None, {"x": np.array([chr(c) for c in points], object)})[0], strict=True
    ):
        if ord(lowered) != point:
            yield point, ord(lowered)


def main() -> None:
    unspaced = matching("|".join(rf"\p{{Script={s}}}" for s in UNSPACED)) & matching(r"\p{L}|\p{Nl}") | {
        ord(c) for c in KANA_MARKS
    }
    word = matching(r"[\p{L}\p{M}\p{N}_]") - unspaced
    tables = {
        "source": f"regex {regex.__version__}, onnxruntime {onnxruntime.__version__}",
        "word": ranges(sorted(word)),
        "unspaced": ranges(sorted(unspaced)),
        "mark": ranges(sorted(matching(r"\p{M}"))),
        "space": ranges(sorted(matching(r"[\p{Z}\t-\r\x1c-\x1f\x85]"))),
        "lower": list(graph_lower()),
    }
    lines = (f"{json.dumps(name)}: {json.dumps(table, separators=(',', ':'))}" for name, table in tables.items())
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
