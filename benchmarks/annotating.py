"""What answers of a language model are worth: the model itself, a student of its answers, and models without them.

    pip install 'textcls[teacher,annotate]'
    python benchmarks/annotating.py DATA/ag_news DATA/trec6 --encoder all-MiniLM-L6-v2 -o benchmarks/annotating.md

DATA is as for compare.py. Where no language model is at hand, a server of this script speaks its protocol, and answers
by a sentence encoder: the label whose name, with the examples it is shown, is nearest, and the probabilities of tokens
by a softmax of the cosines. Everything else is the commands as a person types them. Training rows without their labels
are asked about; the labelled ones have each label twice, and are 100 at least.
"""

import argparse
import csv
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import numpy as np

from textcls import Classifier
from textcls.annotation.annotate import sent
from textcls_training.vectors.sentence_encoder import SentenceEncoder

# What labels are called where their names are not words.
NAMES: Final = {"hatespeech": "hate speech"}
TEST_ROWS, LABELLED, SHARPNESS = 1000, 100, 20
Rows = list[tuple[str, str]]


class Model:
    """Answers by a sentence encoder, each text once."""

    def __init__(self, place: str) -> None:
        self._encoder, self._lock = SentenceEncoder(place), threading.Lock()
        self._known: dict[str, Any] = {}

    def read(self, texts: Sequence[str]) -> None:
        """Encode texts at once, which takes a tenth of the time that it takes one by one."""
        found = self._encoder.encode(texts).astype(np.float64)
        self._known |= zip(texts, found / np.linalg.norm(found, axis=1, keepdims=True), strict=True)

    def vector(self, text: str) -> Any:
        """Return the vector of a text, of length 1."""
        with self._lock:
            if text not in self._known:
                self.read([text])
            return self._known[text]

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a completion, whose tokens are as long as tells the labels apart."""
        labels = asked["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
        _, *shown, last = asked["messages"]
        near = {label: [self.vector(label.replace("_", " "))] for label in labels}
        for question, said in zip(shown[::2], shown[1::2], strict=True):
            near[json.loads(said["content"])["label"]].append(self.vector(question["content"]))
        cosines = np.array([np.mean(vectors, axis=0) @ self.vector(last["content"]) for vectors in near.values()])
        shares = np.exp(SHARPNESS * (cosines - cosines.max()))
        shares /= shares.sum()
        order = np.argsort(-shares)[:20].tolist()
        token = f'{labels[order[0]]}"'
        others = [{"token": f'{labels[i]}"', "logprob": math.log(max(shares[i], 1e-9)), "bytes": None} for i in order]
        written = [
            {"token": '{"label": "', "logprob": 0.0, "bytes": None, "top_logprobs": []},
            {"token": token, "logprob": others[0]["logprob"], "bytes": None, "top_logprobs": others},
            {"token": "}", "logprob": 0.0, "bytes": None, "top_logprobs": []},
        ]
        said = {"role": "assistant", "content": "".join(one["token"] for one in written), "refusal": None}
        choice = {"index": 0, "finish_reason": "stop", "message": said, "logprobs": {"content": written}}
        read = sum(len(message["content"]) // 4 for message in asked["messages"])
        usage = {"prompt_tokens": read, "completion_tokens": 6, "total_tokens": read + 6}
        return {"id": "1", "object": "chat.completion", "created": 1, "model": "e", "choices": [choice], "usage": usage}


@contextmanager
def served(model: Model) -> Iterator[str]:
    """Serve a model, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(model.answer(asked)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def read(path: Path) -> Rows:
    """Return the rows of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["text"], NAMES.get(row["label"], row["label"])) for row in csv.DictReader(file)]


def write(path: Path, rows: Sequence[Sequence[str]], *columns: str) -> Path:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def drawn(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Return the labelled rows, with each label twice, and the others."""
    rows = random.Random(seed).sample(rows, len(rows))
    seen: Counter[str] = Counter()
    first: set[int] = set()
    for i, (_, label) in enumerate(rows):
        seen[label] += 1
        if seen[label] <= 2:
            first.add(i)
    for i in range(len(rows)):
        if len(first) >= LABELLED:
            break
        first.add(i)
    return [rows[i] for i in sorted(first)], [row for i, row in enumerate(rows) if i not in first]


def right(model: Path, test: Rows) -> float:
    """Return the accuracy of a model in percent."""
    answers = Classifier.load(model).predict([text for text, _ in test])
    return 100 * float(np.mean([one.label == label for one, (_, label) in zip(answers, test, strict=True)]))


def textcls(*words: object) -> None:
    """Run a command."""
    subprocess.run([sys.executable, "-m", "textcls", *map(str, words), "-q"], check=True, stdout=subprocess.DEVNULL)


def measure(
    folder: Path, model_asked: Model, url: str, counts: Sequence[int], seed: int, work: Path
) -> list[list[str]]:
    """Return the lines of a set: how the language model is asked, how many texts, and what each is worth."""
    test = random.Random(seed).sample(held := read(folder / "test.csv"), min(TEST_ROWS, len(held)))
    labelled, others = drawn(read(folder / "train.csv"), seed)
    model_asked.read([sent(text) for text, _ in (*test, *labelled, *others[: max(counts)])])
    names = write(work / "labels.csv", [[name] for name in sorted({label for _, label in labelled})], "label")
    hundred = write(work / "hundred.csv", labelled, "text", "label")
    words = write(work / "words.txt", [[name] for name in sorted({label for _, label in labelled})], "").read_text()
    (work / "words.txt").write_text(words.lstrip("\r\n"))
    textcls("train", hundred, "-o", work / "default.onnx")
    default, lines = right(work / "default.onnx", test), []
    for how, more in (("names alone", ()), ("with 2 examples a label", ("--labelled", hundred, "--examples", 2))):
        ask = ("--labels", names, "--endpoint", url, "--model", "encoder", "--yes", *more)
        tested = write(work / "test.csv", [[text] for text, _ in test], "text")
        textcls("annotate", tested, *ask, "-o", work / f"tested-{len(more)}.csv")
        with (work / f"tested-{len(more)}.csv").open(newline="", encoding="utf-8") as file:
            answers = [row["answer"] for row in csv.DictReader(file)]
        teacher = 100 * float(np.mean([a == label for a, (_, label) in zip(answers, test, strict=True)]))
        for count in counts:
            asked = write(work / f"asked-{count}.csv", [[text] for text, _ in others[:count]], "text")
            answered, model = work / f"answered-{count}-{len(more)}.csv", work / "student.onnx"
            textcls("annotate", asked, *ask, "-o", answered)
            if more:
                textcls("annotate", hundred, *ask, "-o", work / "hundred-answered.csv", "--text-column", "text")
                given = ("--unlabelled", answered, "--unlabelled", work / "hundred-answered.csv")
                textcls("train", hundred, *given, "--probabilities", "p_*", "-o", model)
                named = ""
            else:
                textcls("train", answered, "-o", model)
                options = ("--objective", "label-names", "--names", work / "words.txt")
                textcls("pretrain", asked, *options, "-o", work / "named.onnx")
                named = f"{right(work / 'named.onnx', test):.1f}"
            alone = f"{default:.1f}" if more else ""
            figures = [f"{teacher:.1f}", f"{right(model, test):.1f}", alone, named]
            lines.append([folder.name, how, f"{count:,}", *figures])
            print(lines[-1], flush=True)
    return lines


HEAD: Final = ("set", "asked", "texts", "language model", "student", "default on the labelled rows", "label-names")


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--texts", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    lines = []
    model = Model(asked.encoder)
    with served(model) as url:
        for folder in asked.data:
            with tempfile.TemporaryDirectory() as work:
                lines += measure(folder, model, url, asked.texts, asked.seed, Path(work))
    table = [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *lines)]
    command = " ".join(["python benchmarks/annotating.py", *(f"DATA/{folder.name}" for folder in asked.data)])
    note = f"`{command}`, seed {asked.seed}: accuracy on {TEST_ROWS:,} test rows in percent."
    asked.output.write_text("\n".join([note, "", *table, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
