"""Labels by examples: taught to a model that is served, and taken back.

The docstrings are what the service's description says of them.
"""

from textcls.errors import InputError, TooLargeError
from textcls.model.labels import unpaired_surrogate
from textcls.model.teaching.support import prototypes_of
from textcls.model.teaching.teach import UNCALIBRATED
from textcls.server.inference import answers, parsing
from textcls.server.models.registry import Served
from textcls.server.models.teaching import Lesson
from textcls.server.problems import RefusalError
from textcls.server.routes.native import reply
from textcls.server.routes.routing import Reply, RequestContext
from textcls.server.routes.schemas import Labels, SupportOfLabel, TakenBack, Taught, TeachRequest
from textcls.server.settings import Limits


async def labels(asked: RequestContext, name: str) -> Reply:
    """Say what the labels of a model are made of, and how many examples each has been taught.

    Needs the admin key. The model is one of prototypes (`textcls train --head prototypes`).
    """
    generation = asked.service.generation
    served = generation.get(name)
    said = Labels(model=name, sha256=served.sha256, generation=generation.number, labels=_support(served))
    return Reply(200, answers.encode(said.model_dump(exclude_unset=True)))


async def teach(asked: RequestContext, name: str) -> Reply:
    """Teach a label by a few examples, without training: a new one, or better examples of an old one.

    Needs the admin key, a service with `teaching`, and a model of prototypes (`textcls train --head prototypes`). The
    answer comes once the model's file holds it, and all workers answer with it. The same call twice changes nothing.
    """
    _check_on(asked)
    kind = next((value for header, value in asked.headers if header == b"content-type"), b"")
    request = parsing.parse(TeachRequest, await asked.read(), kind, asked.service.settings)
    _check(request, asked.service.settings)
    lesson = Lesson(name, request.label, request.examples)
    learnt, workers = await asked.service.learn(lesson, asked.share, asked.caller)
    if learnt.label is None:
        raise TypeError("a label was taught, and there is no report")
    return reply(
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


async def take_back(asked: RequestContext, name: str, label: str) -> Reply:
    """Take back what a label has been taught: one of the training is as it was trained, another is no longer there.

    Needs the admin key, and a service with `teaching`.
    """
    _check_on(asked)
    learnt, workers = await asked.service.learn(Lesson(name, label, None), asked.share, asked.caller)
    return reply(
        TakenBack(
            model=name,
            label=label,
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
        said = SupportOfLabel(label=label, support_rows=len(rows), taught_examples=prototypes.taught(i))
        if prototypes.keeps_texts:
            said.texts = [row.text for row in rows if row.taught and row.text is not None]
        found.append(said)
    return found


def _check_on(asked: RequestContext) -> None:
    if not asked.service.settings.teaching:
        raise RefusalError(403, "Teaching is off: start the service with --teaching, and models that it may rewrite.")


def _check(request: TeachRequest, limits: Limits) -> None:
    """Refuse examples that could not be asked about, or not be stored."""
    for i, text in enumerate(request.examples):
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
