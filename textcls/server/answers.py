"""From the bytes of a request to those of its answer: one pure function, on the event loop or in a thread alike.

The answer is built from plain objects: a response model would check each of thousands of numbers that are right anyway.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

from textcls import tokenizer
from textcls.artifact import ModelInfo
from textcls.classifier import Classifier
from textcls.errors import TooLargeError
from textcls.results import Prediction
from textcls.server import parsing
from textcls.server.registry import Generation, Served
from textcls.server.schemas import ClassifyRequest
from textcls.server.settings import Limits


class Outcome(NamedTuple):
    """What there is to count of the answer to one text."""

    label: str
    score: float
    abstains: bool
    tokens: int


class Answer(NamedTuple):
    """The bytes of a `ClassifyAnswer`, who gave it, and what there is to count.

    Attributes:
        body: the bytes.
        served: the model.
        outcomes: one a text.
        texts: as sent, for the log if it is told to hold them.
        headers: what the answer needs beyond its length and who gave it.
        kind: its content type.
    """

    body: bytes
    served: Served
    outcomes: Sequence[Outcome]
    texts: Sequence[str]
    headers: Sequence[tuple[bytes, bytes]] = ()
    kind: bytes = b"application/json"


# Tokens x labels that the model splits at once, 4 bytes each. A text alone may have more.
SLICE: Final = 2_000_000

# From the bytes of a request and its content type to an answer.
Form = Callable[[Generation, Limits, bytes, bytes], Answer]


def answer(generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> Answer:
    """Answer a request.

    Raises:
        InputError: the body is no request.
        NotFoundError: there is no such model.
        TooLargeError: it is beyond a limit, which the text names.
    """
    return complete(*read(generation, limits, body, content_type))


def read(generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> tuple[ClassifyRequest, Served]:
    """Return a request that may be answered, and the model that it asks for.

    Raises:
        As `answer` does.
    """
    request = parsing.parse(body, content_type)
    served = generation.get(request.model)
    check(request, limits, served)
    return request, served


def complete(request: ClassifyRequest, served: Served) -> Answer:
    """Ask the model, and write what it says."""
    texts, classifier = request.inputs, served.classifier
    if len(texts) == 1:
        # A text alone spares the sorting of a batch.
        return write(
            request, served, [classifier.predict(texts[0], explain=request.explain, threshold=request.threshold)]
        )
    return write(request, served, predict(classifier, texts, explain=request.explain, threshold=request.threshold))


def predict(
    classifier: Classifier, texts: Sequence[str], *, explain: bool, threshold: float | None = None
) -> Iterator[Prediction]:
    """Yield the answers to several texts.

    An explanation says of each token what it added to all labels, of which few may be wanted: texts are split some at a
    time, and what is said of them is gone before the next if whoever asks does not keep it.
    """
    if not explain:
        yield from classifier.predict(texts, threshold=threshold)
        return
    for some in _slices(texts, classifier.info):
        yield from classifier.predict(some, explain=True, threshold=threshold)


def _slices(texts: Sequence[str], info: ModelInfo) -> Iterator[list[str]]:
    """Yield texts in their order, so many at once that their explanations stay within `SLICE`."""
    some: list[str] = []
    longest = 0
    for text in texts:
        # A text has no more tokens than characters, and is padded to the longest of its neighbours.
        longest = max(longest, min(len(text), info.max_tokens))
        if some and (len(some) + 1) * longest * len(info.labels) > SLICE:
            yield some
            some, longest = [], min(len(text), info.max_tokens)
        some.append(text)
    if some:
        yield some


def write(request: ClassifyRequest, served: Served, predictions: Iterable[Prediction]) -> Answer:
    """Write what the model said."""
    # Result by result, so that the objects of one explanation are gone before those of the next are made.
    parts: list[bytes] = []
    outcomes: list[Outcome] = []
    for prediction in predictions:
        result = prediction.as_json(request.top_k)
        parts.append(encode(result))
        abstains = prediction.decision == "abstain"
        outcomes.append(Outcome(result["label"], result["score"], abstains, prediction.tokens_read))
    return Answer(served.head + b",".join(parts) + b"]}", served, outcomes, request.inputs)


def check(request: ClassifyRequest, limits: Limits, served: Served) -> None:
    """Refuse what is beyond a limit.

    Raises:
        TooLargeError: the text names the limit.
    """
    texts = request.inputs
    if len(texts) > limits.max_inputs:
        raise TooLargeError(
            f"inputs holds {len(texts):,} texts, and max_inputs is {limits.max_inputs:,}: send several requests."
        )
    for i, text in enumerate(texts):
        if len(text) > limits.max_characters:
            raise TooLargeError(
                f"inputs[{i}] has {len(text):,} characters, and max_characters is {limits.max_characters:,}: "
                "shorten it or split it."
            )
    if request.explain:
        _check_explained(request, limits, served)


def _check_explained(request: ClassifyRequest, limits: Limits, served: Served) -> None:
    info = served.classifier.info
    labels = min(request.top_k or len(info.labels), len(info.labels))
    # A text has no more tokens than characters: most requests need no counting.
    if sum(min(len(text), info.max_tokens) for text in request.inputs) * labels <= limits.max_explained:
        return
    tokens = sum(sum(1 for _ in tokenizer.token_spans(text, info.max_tokens)) for text in request.inputs)
    if tokens * labels > limits.max_explained:
        raise TooLargeError(
            f"The explained answer would hold {tokens:,} tokens x {labels:,} labels, and max_explained is "
            f"{limits.max_explained:,}: send fewer or shorter texts, or ask for fewer labels with top_k."
        )


def encode(value: Any) -> bytes:
    """Return plain data as JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # An unpaired surrogate in a token has no UTF-8 form; escaped, the caller gets back what was sent.
        return json.dumps(value, separators=(",", ":")).encode()
