"""What benchmarks/serving.py compares: each app in a process of its own, on uvicorn with the same loop and parser.

python benchmarks/serving_apps.py NAME PORT WORK
"""

import csv
import sys
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI, Response

from textcls.server.inference.schemas import ClassifyRequest


def noop(work: Path) -> FastAPI:
    """A FastAPI route that parses the same request and returns bytes of the same size."""
    app = FastAPI()
    answers = [b"x" * int(size) for size in (work / "sizes").read_text().split()]

    @app.post("/v1/classify")
    async def classify(body: ClassifyRequest) -> Response:
        return Response(answers[2 if len(body.inputs) > 1 else body.explain], media_type="application/json")

    return app


def sklearn(work: Path) -> FastAPI:
    """scikit-learn as people put it behind FastAPI: a plain function, so a thread for each request."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts, labels = _rows(work)
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(max_iter=200))
    model.fit(texts, labels)

    def ask(inputs: list[str]) -> list[dict[str, Any]]:
        return [
            {"labels": [{"label": label, "score": score} for label, score in zip(model.classes_, row, strict=True)]}
            for row in model.predict_proba(inputs).tolist()
        ]

    return _peer(ask)


def fasttext(work: Path) -> FastAPI:
    """fastText with bigrams, likewise."""
    import fasttext

    texts, labels = _rows(work)
    path = work / "fasttext.txt"
    path.write_text("\n".join(f"__label__{b} {' '.join(t.split())}" for t, b in zip(texts, labels, strict=True)))
    model = fasttext.train_supervised(str(path), wordNgrams=2, epoch=5, verbose=0, thread=1)

    def ask(inputs: list[str]) -> list[dict[str, Any]]:
        found = model.predict([" ".join(text.split()) for text in inputs], k=-1)
        return [
            {"labels": [{"label": a, "score": min(1.0, float(b))} for a, b in zip(names, scores, strict=True)]}
            for names, scores in zip(*found, strict=True)
        ]

    return _peer(ask)


def _peer(ask: Any) -> FastAPI:
    app = FastAPI()

    @app.post("/v1/classify")
    def classify(body: ClassifyRequest) -> Response:
        return Response(orjson.dumps({"results": ask(body.inputs)}), media_type="application/json")

    return app


def _rows(work: Path) -> tuple[list[str], list[str]]:
    with (work / "train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def main(name: str, port: int, work: Path) -> None:
    app = {"noop": noop, "sklearn": sklearn, "fasttext": fasttext}[name](work)
    uvicorn.run(app, port=port, http="httptools", loop="uvloop", log_config=None, access_log=False, lifespan="off")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
