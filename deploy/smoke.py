"""Ask a running service everything that matters, with the standard library alone; exit 1 and say what is wrong.

python deploy/smoke.py http://localhost:8000          # the key, if it needs one, in TEXTCLS_API_KEY
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

KEY = os.environ.get("TEXTCLS_API_KEY", "")


def ask(url: str, body: Any = None) -> tuple[int, Any, str]:
    """Return status, body and the header that says which model answered."""
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {KEY}"} if KEY else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
            text = answer.read().decode()
            status, model = answer.status, answer.headers.get("x-model", "")
    except urllib.error.HTTPError as error:
        text, status, model = error.read().decode(), error.code, ""
    return status, json.loads(text) if text.startswith("{") else text, model


def problems(base: str) -> list[str]:
    """Return what is wrong."""
    found = []

    def check(true: bool, said: str) -> None:
        if not true:
            found.append(said)

    status, answer, _ = ask(f"{base}/readyz")
    check(status == 200, f"/readyz answers {status}: {answer}")
    status, answer, _ = ask(f"{base}/v1/models")
    check(status == 200, f"/v1/models answers {status}: {answer}")
    if status != 200:
        return found
    default = next(one for one in answer["models"] if one["default"])
    names = default["text_columns"]
    rows = len(names) > 1 or bool(default.get("columns"))
    texts = [dict.fromkeys(names, text) if rows else text for text in ("hello", "good bye")]
    status, answer, model = ask(f"{base}/v1/classify", {"inputs": texts, "explain": True})
    check(status == 200, f"/v1/classify answers {status}: {answer}")
    if status == 200:
        check("sha256=" in model, "the header x-model is missing")
        check(len(answer["results"]) == 2, "two texts did not get two answers")
        for result in answer["results"]:
            total = sum(each["score"] for each in result["labels"])
            # With several labels per text each score is a probability of its own.
            check(default["task"] == "multi-label" or abs(total - 1) < 1e-3, "the scores do not sum to 1")
            for label, logit in result["logits"].items():
                added = [*result["tokens"], *result.get("columns", [])]
                parts = result["bias"][label] + sum(one["contributions"][label] for one in added)
                check(abs(parts - logit) < 1e-3, f"the contributions to {label} do not add up to its logit")
    status, _, _ = ask(f"{base}/v1/classify", {"inputs": []})
    check(status == 422, f"an empty list is answered {status}, not 422")
    status, text, _ = ask(f"{base}/metrics")
    check(status == 200 and "textcls_requests_total" in str(text), f"/metrics answers {status}")
    if KEY:
        request = urllib.request.Request(f"{base}/v1/models")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                check(False, f"without a key /v1/models answers {answer.status}")
        except urllib.error.HTTPError as error:
            check(error.code == 401, f"without a key /v1/models answers {error.code}, not 401")
    return found


if __name__ == "__main__":
    base = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    try:
        wrong = problems(base)
    except OSError as error:
        wrong = [f"{base} does not answer: {getattr(error, 'reason', error)}"]
    print("\n".join(wrong) or "ok")
    sys.exit(bool(wrong))
