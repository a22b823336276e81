"""From the bytes of a request to those of its answer: pure functions, for the event loop and for threads.

A request is first parsed, then its cost is estimated, then it is answered. The answer is built from plain objects: a
response model would needlessly check each of thousands of numbers.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from textcls.errors import InputError, TooLargeError
from textcls.model import tokenizer
from textcls.model.classifier import Classifier
from textcls.model.columns import Silence, silent
from textcls.model.prediction import Prediction
from textcls.model.text_columns import and_, text_of_row
from textcls.server.inference import explaining, parsing
from textcls.server.inference.explaining import ExplainOptions
from textcls.server.inference.schemas import ClassifyRequest
from textcls.server.models.registry import Generation, Served
from textcls.server.monitoring.drift import Outcome
from textcls.server.settings import Limits


class EncodedAnswer(NamedTuple):
    """The bytes of an answer, the model that gave it, and what the metrics count.

    Attributes:
        body: the bytes.
        served: the model.
        outcomes: one per text.
        headers: further headers, beside those of the length and the model.
        kind: its content type.
        silent: how many values of columns beside the text gave no information, by column and reason.
    """

    body: bytes
    served: Served
    outcomes: Sequence[Outcome]
    headers: Sequence[tuple[bytes, bytes]] = ()
    kind: bytes = b"application/json"
    silent: Mapping[tuple[str, Silence], int] = MappingProxyType({})


class Request(NamedTuple):
    """A request within all limits, independent of its wire format.

    Attributes:
        served: the model.
        texts: at least one.
        write: makes the answer from the model's predictions, one per text; it keeps none of their arrays.
        explain: whether to return what each token added.
        threshold: score below which the decision is `abstain`, or, if a text may have several labels, from which each
            label is assigned; None for the model's own.
        top_k: how many labels the answer contains; None for all.
        more: what explanations contain beyond what each token added; None for nothing.
    """

    served: Served
    texts: Sequence[str]
    write: Callable[[Iterable[Prediction]], EncodedAnswer]
    explain: bool = False
    threshold: float | None = None
    top_k: int | None = None
    more: ExplainOptions | None = None

    @property
    def explained_labels(self) -> int:
        """The number of labels in an explanation; 0 without one."""
        labels = self.served.classifier.cost.labels
        return min(self.top_k or labels, labels) if self.explain else 0

    @property
    def searches(self) -> bool:
        """Whether a counterfactual is searched for, which may take seconds."""
        return self.more is not None and self.more.counterfactual

    @property
    def microseconds(self) -> float:
        """An estimate of how long the answer takes."""
        labels, classifier = self.explained_labels if self.explain else 0, self.served.classifier
        plain = classifier.cost.microseconds(self.texts, labels)
        return (
            plain if self.more is None else plain + explaining.microseconds(self.more, classifier, self.texts, labels)
        )

    @property
    def bytes(self) -> int:
        """An estimate of how many bytes of memory the request holds while it is answered."""
        working = self.served.classifier.cost.working_bytes(self.texts, self.explained_labels)
        if self.more is not None:
            working += explaining.working_bytes(self.more, self.served.classifier.cost, self.texts)
        return working + sum(map(sys.getsizeof, self.texts))


# Parses the bytes of a request and its content type.
RequestReader = Callable[[Generation, Limits, bytes, bytes], Request]


def read(generation: Generation, limits: Limits, body: bytes, content_type: bytes) -> Request:
    """Parse a request to `/v1/classify`.

    Raises:
        InputError: the body is not a request.
        NotFoundError: there is no such model.
        TooLargeError: it exceeds a limit, which the message names.
    """
    asked = parsing.parse(ClassifyRequest, body, content_type, limits)
    served = generation.get(asked.model)
    texts = texts_of(served, asked.inputs, "inputs")
    more = None
    if asked.explain is not None and not asked.explain.plain:
        more = explaining.checked(asked.explain, served.classifier, texts)
    write = partial(_write, served, asked.top_k, more, silent_values(served, asked.inputs))
    explain = asked.explain is not None
    return checked(Request(served, texts, write, explain, asked.threshold, asked.top_k, more), limits)


def texts_of(served: Served, given: Sequence[object], field: str) -> list[str]:
    """Return the texts of a field's values: strings, or rows with the text columns of the model.

    Raises:
        InputError: a row lacks a column; or a text is one string, and the model was trained on several columns.
    """
    info = served.classifier.info
    columns, texts = info.text_columns, []
    for i, text in enumerate(given):
        if isinstance(text, dict):
            texts.append(text_of_row(text, columns, f"{field}[{i}]", info.columns))
        elif isinstance(text, str) and len(columns) == 1:
            # Separators of columns in a plain string are part of the text.
            texts.append(text_of_row({columns[0]: text}, columns, "", info.columns) if info.columns else text)
        else:
            # Taken as the whole text, one column alone would get an answer, and more often a wrong one.
            example = ", ".join(f"{encode(name).decode()}: ..." for name in columns)
            raise InputError(
                f"{field}[{i}] is one text, and the model {served.name!r} was trained on {and_(columns)}: send "
                f"{{{example}}}, with an empty string for what there is not."
            )
    return texts


def silent_values(served: Served, given: Sequence[object]) -> Mapping[tuple[str, Silence], int]:
    """Return how many values of the columns beside the text give no information, by column and reason."""
    columns = served.classifier.info.columns
    return Counter(one for row in given for one in silent(row if isinstance(row, dict) else {}, columns))


def checked(request: Request, limits: Limits) -> Request:
    """Return `request` after checking its size.

    Raises:
        TooLargeError: it exceeds a limit; the message names it.
    """
    texts = request.texts
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
        _check_explained(request, limits)
    return request


def _check_explained(request: Request, limits: Limits) -> None:
    most, labels = request.served.classifier.info.max_tokens, request.explained_labels
    times = 1 if request.more is None else request.more.size
    # A text has no more tokens than characters: most requests need no counting.
    if sum(min(len(text), most) for text in request.texts) * labels * times <= limits.max_explained:
        return
    tokens = sum(sum(1 for _ in tokenizer.token_spans(text, most)) for text in request.texts)
    if tokens * labels * times > limits.max_explained:
        more = f", {times} times for what else is asked" if times > 1 else ""
        raise TooLargeError(
            f"The explained answer would hold {tokens:,} tokens x {labels:,} labels{more}, and max_explained is "
            f"{limits.max_explained:,}: send fewer or shorter texts, or ask /v1/classify for fewer labels (top_k)."
        )


def complete(request: Request) -> EncodedAnswer:
    """Run the model and write its answer."""
    texts, classifier = request.texts, request.served.classifier
    if len(texts) == 1:
        # A single text avoids the sorting of a batch.
        return request.write([classifier.predict(texts[0], explain=request.explain, threshold=request.threshold)])
    return request.write(predict(classifier, texts, explain=request.explain, threshold=request.threshold))


def predict(
    classifier: Classifier, texts: Sequence[str], *, explain: bool, threshold: float | None = None
) -> Iterator[Prediction]:
    """Yield the answers to several texts.

    An explanation contains what each token added to all labels, of which few may be wanted: texts are explained one
    model call at a time, and the explanations of one call can be freed before the next, unless the caller keeps them.
    """
    if not explain:
        yield from classifier.predict(texts, threshold=threshold)
        return
    for some in classifier.cost.divide([len(text) for text in texts], range(len(texts))):
        yield from classifier.predict([texts[i] for i in some], explain=True, threshold=threshold)


def _write(
    served: Served,
    top_k: int | None,
    more: ExplainOptions | None,
    silent: Mapping[tuple[str, Silence], int],
    predictions: Iterable[Prediction],
) -> EncodedAnswer:
    """Write the body of a `ClassifyAnswer`."""
    # One result at a time, so that the objects of one explanation are freed before those of the next are made; and into
    # one buffer, since joining the parts at the end would take the memory of a large answer twice.
    body = BytesIO()
    body.write(served.head)
    outcomes: list[Outcome] = []
    for prediction in predictions:
        result = prediction.as_json(top_k)
        if more is not None:
            names = [scored["label"] for scored in result["labels"]]
            result.update(explaining.answer(more, served.classifier, prediction, names))
        if outcomes:
            body.write(b",")
        body.write(encode(result))
        outcomes.append(outcome(prediction))
    body.write(b"]}")
    return EncodedAnswer(body.getvalue(), served, outcomes, silent=silent)


def outcome(prediction: Prediction) -> Outcome:
    """Return what the metrics count of a prediction."""
    best = int(prediction.probabilities.argmax())
    score = float(prediction.probabilities[best])
    labels = prediction.assigned if prediction.several else (prediction.label_names[best],)
    usual = not prediction.several or prediction.threshold is None
    abstains = prediction.decision == "abstain"
    return Outcome(labels, score, abstains, prediction.tokens_read, prediction.tokens_unknown, usual)


def encode(value: Any) -> bytes:
    """Return plain data as JSON."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _encode_parts(value)


def _encode_parts(value: Any) -> bytes:
    """Return plain data as JSON if part of it cannot be encoded as UTF-8.

    An unpaired surrogate in a token is escaped, so that the caller gets back what was sent. Everything else is written
    as usual, by orjson: `json` would hold the interpreter for ten times as long.
    """
    if isinstance(value, dict):
        return b"{" + b",".join(encode(name) + b":" + encode(each) for name, each in value.items()) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(map(encode, value)) + b"]"
    return json.dumps(value).encode()
