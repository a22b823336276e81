"""What commands print with --json: one object in one line."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from textcls.model.explanation import Attribution, Explanation
from textcls.model.prediction import Prediction
from textcls.model.sub_token_attribution import SubTokenAttribution


def json_line(value: Any) -> str:
    """Return `value` as JSON in one line, readable unless it contains what standard output cannot encode.

    In UTF-8 these are unpaired surrogates; in a Windows code page they may be most of the world's scripts.
    """
    line = json.dumps(value, ensure_ascii=False)
    try:
        line.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return line


def explanation_json(
    prediction: Prediction,
    explanation: Explanation,
    attributions: Sequence[Attribution],
    temperature: float,
    sub_tokens: Sequence[SubTokenAttribution] | None = None,
    by_unit: Explanation | None = None,
) -> dict[str, Any]:
    """Return a prediction with its explanation, its attributions, and the parts of its tokens, as plain data.

    If a text may have several labels, there is an attribution for each explained label. `by_unit` is the explanation by
    words, phrases or sentences, if one is wanted.
    """
    found = {
        "score": prediction.score,
        "labels": [scored._asdict() for scored in prediction.top()],
        "decision": prediction.decision,
        "threshold": prediction.threshold,
        "truncated": prediction.truncated,
        "temperature": temperature,
        **prediction.node_as_json(),
        **explanation.as_json(),
        "evidence": attributions[0].as_json(),
    }
    if prediction.thresholds is not None:
        found["assigned"] = list(prediction.assigned)
        found["thresholds"] = dict(zip(prediction.label_names, prediction.thresholds.tolist(), strict=True))
        found["evidence_of_labels"] = [attribution.as_json() for attribution in attributions]
    if sub_tokens is not None:
        found["parts"] = [part.as_json(explanation.text) for part in sub_tokens]
    if by_unit is not None:
        found["unit"], found["units"] = by_unit.unit, by_unit.units_as_json()
    return found
