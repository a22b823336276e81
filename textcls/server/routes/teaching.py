"""Labels by examples: taught to a model that is served, and taken back.

The docstrings of the routes appear in the OpenAPI description.
"""

from collections.abc import Sequence

from fastapi import Response
from starlette.convertors import StringConvertor, register_url_convertor

from textcls.errors import InputError, TooLargeError
from textcls.model.labels import unpaired_surrogate
from textcls.model.teaching.support import prototypes_of
from textcls.model.teaching.teach import UNCALIBRATED
from textcls.server.http.exchange import Exchange
from textcls.server.inference import parsing
from textcls.server.inference.answers import texts_of
from textcls.server.models.registry import Served
from textcls.server.models.teaching import Lesson
from textcls.server.problems import RefusalError
from textcls.server.routes.answering import errors, json, router, takes
from textcls.server.routes.dependencies import WITH_ADMIN_KEY, Asked
from textcls.server.routes.schemas import Labels, SupportOfLabel, TakenBack, Taught, TeachRequest
from textcls.server.settings import Limits


class _Rest(StringConvertor):
    """The rest of a path, including slashes and line breaks."""

    regex = "(?s:.+)"


register_url_convertor("rest", _Rest())
lessons = router(WITH_ADMIN_KEY)


@lessons.get(
    "/v1/models/{name}/labels",
    summary="List the labels of a model, and what they were taught",
    response_model=Labels,
    responses=errors(401, 403, 404, 421, 422, 500),
)
async def labels(name: str, asked: Asked) -> Response:
    """List the labels of a model, their support rows, and how many examples each has been taught.

    Needs the admin key. The model is one of prototypes (`textcls train --head prototypes`).
    """
    generation = asked.service.generation
    served = generation.get(name)
    answer = Labels(model=name, sha256=served.sha256, generation=generation.number, labels=_support(served))
    return json(answer.model_dump(exclude_unset=True))


@lessons.post(
    "/v1/models/{name}/labels",
    summary="Teach a label by examples",
    response_model=Taught,
    responses=errors(401, 403, 404, 408, 409, 413, 421, 422, 429, 500),
    openapi_extra=takes(TeachRequest),
)
async def teach(name: str, asked: Asked) -> Response:
    """Teach a label by a few examples, without training: a new one, or better examples of an old one.

    Needs the admin key, a service with `teaching`, and a model of prototypes (`textcls train --head prototypes`). The
    answer comes once the model's file holds it, and all workers answer with it. The same call twice changes nothing.
    """
    _check_on(asked)
    kind = asked.headers.get(b"content-type", b"")
    request = parsing.parse(TeachRequest, await asked.body(), kind, asked.service.settings)
    examples = texts_of(asked.service.generation.get(name), request.examples, "examples")
    _check(request.label, examples, asked.service.settings)
    lesson = Lesson(name, request.label, examples)
    learnt, workers = await asked.service.learn(lesson, asked.share, asked.caller)
    if learnt.label is None:
        raise TypeError("a label was taught, and there is no report")
    return json(
        Taught(
            model=name,
            changed=learnt.file.changed,
            sha256=learnt.file.after,
            generation=learnt.file.number,
            workers=workers.serving,
            workers_waiting=workers.waiting,
            calibration=UNCALIBRATED,
            **learnt.label.to_json(),
        )
    )


@lessons.delete(
    "/v1/models/{name}/labels/{label:rest}",  # A label may hold a slash.
    summary="Take back what a label was taught",
    response_model=TakenBack,
    responses=errors(401, 403, 404, 409, 421, 422, 429, 500),
)
async def take_back(name: str, label: str, asked: Asked) -> Response:
    """Take back what a label has been taught: a trained label is as it was trained, any other one is removed.

    Needs the admin key, and a service with `teaching`.
    """
    _check_on(asked)
    learnt, workers = await asked.service.learn(Lesson(name, label, None), asked.share, asked.caller)
    return json(
        TakenBack(
            model=name,
            label=learnt.name,
            changed=learnt.file.changed,
            sha256=learnt.file.after,
            generation=learnt.file.number,
            workers=workers.serving,
            workers_waiting=workers.waiting,
            left=learnt.left,
        )
    )


def _support(served: Served) -> list[SupportOfLabel]:
    info = served.classifier.info
    prototypes = prototypes_of(info, served.classifier.path)
    found = []
    for i, (label, rows) in enumerate(zip(info.labels, prototypes.support, strict=True)):
        support = SupportOfLabel(label=label, support_rows=len(rows), taught_examples=prototypes.taught(i))
        if prototypes.keeps_texts:
            support.texts = [row.text for row in rows if row.taught and row.text is not None]
        found.append(support)
    return found


def _check_on(asked: Exchange) -> None:
    if not asked.service.settings.teaching:
        raise RefusalError(403, "Teaching is off: start the service with --teaching, and models that it may rewrite.")


def _check(label: str, examples: Sequence[str], limits: Limits) -> None:
    """Refuse a label that no URL can name, and examples that are too large for a request or cannot be stored."""
    if label.strip() in (".", ".."):
        raise InputError(f"The label {label!r} could not be taken back by its address: choose another name.")
    for i, text in enumerate(examples):
        if len(text) > limits.max_characters:
            raise TooLargeError(
                f"examples[{i}] has {len(text):,} characters, and max_characters is {limits.max_characters:,}: "
                "shorten it."
            )
        if unpaired_surrogate(text):
            raise InputError(
                f"examples[{i}] holds half a character (an unpaired surrogate), which UTF-8 cannot hold: correct or "
                "remove it."
            )
