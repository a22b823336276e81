"""The service's own routes. Their docstrings appear in the OpenAPI description."""

import asyncio
from typing import Final

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse

from textcls.server.http.exchange import Exchange
from textcls.server.http.gate import Ahead
from textcls.server.http.response import Ready
from textcls.server.inference import answers
from textcls.server.inference.schemas import ClassifyAnswer, ClassifyRequest
from textcls.server.models.registry import Served
from textcls.server.monitoring import metrics
from textcls.server.monitoring.exposition import ShownModel, exposition
from textcls.server.problems import RefusalError
from textcls.server.routes import absent
from textcls.server.routes.answering import answered, errors, json, router, takes
from textcls.server.routes.dependencies import (
    FOR_METRICS,
    WITH_ADMIN_KEY,
    WITH_KEY,
    Asked,
    check_origin,
    require_key,
)
from textcls.server.routes.schemas import Changed, Health, ModelCard, ModelColumn, Models, Reloaded

texts = router(WITH_KEY)
administration = router(WITH_ADMIN_KEY)
# Probes may use any host name, have no key, and reveal nothing.
probes = router(())
watching = router(FOR_METRICS)


@texts.post(
    "/v1/classify",
    summary="Classify texts",
    response_model=ClassifyAnswer,
    responses=errors(401, 403, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504),
    openapi_extra=takes(ClassifyRequest),
)
async def classify(asked: Asked) -> Response:
    """Classify one text or a batch; with `explain`, also split each logit exactly over the tokens.

    The split accounts for this model's answer and is no claim about causes. The header `x-model` says which model
    answered: its name, version and SHA-256.
    """
    return await asked.classify(answers.read)


@texts.get(
    "/v1/models", summary="List the models served", response_model=Models, responses=errors(401, 403, 421, 429, 500)
)
async def models(asked: Asked) -> Response:
    """List the models served, their labels, and how they were calibrated."""
    generation = asked.service.generation
    first = generation.get(None)
    cards = [_card(served, default=served is first) for served in generation.models.values()]
    answer = Models(generation=generation.number, models=cards)
    return json(answer.model_dump(exclude_unset=True))


def _card(served: Served, *, default: bool) -> ModelCard:
    info = served.classifier.info
    card = ModelCard(
        name=served.name,
        version=served.version,
        sha256=served.sha256,
        default=default,
        labels=list(info.labels),
        task=info.task,
        format_version=info.format_version,
        threshold=info.threshold,
        max_tokens=info.max_tokens,
        text_columns=list(info.text_columns),
        temperature=info.temperature,
    )
    if info.columns:
        card.columns = [ModelColumn.model_validate(column.to_json()) for column in info.columns]
    if info.example is not None:
        card.example = info.example
    if info.scale is not None and info.shift is not None and info.thresholds is not None:
        card.scale = dict(zip(info.labels, info.scale, strict=True))
        card.shift = dict(zip(info.labels, info.shift, strict=True))
        card.thresholds = dict(zip(info.labels, info.thresholds, strict=True))
    return card


@administration.post(
    "/v1/admin/reload",
    summary="Reload the model files",
    response_model=Reloaded,
    responses=errors(401, 403, 409, 421, 500),
)
async def reload(asked: Asked) -> Response:
    """Test the files and exchange the models of all workers; a bad file changes nothing, and the answer says why.

    Needs the admin key. Keys are reloaded as well. The answer reports models with other labels, columns or another task
    than before, removed models, and a new default; if `same_labels` is set, such a reload is refused.
    """
    done, workers = await asked.service.reload(asked.caller)
    labels, columns, tasks, models = (
        [Changed(model=change.model, added=list(change.added), removed=list(change.removed)) for change in some]
        for some in done.changes
    )
    changed = {"changed_labels": labels, "changed_columns": columns, "changed_tasks": tasks, "changed_models": models}
    return json(Reloaded(generation=done.number, workers=workers, **changed))


@administration.api_route("/v1/admin/{path:path}", methods=absent.METHODS, include_in_schema=False)
async def no_administration(path: str, request: Request) -> Response:
    """Answer 404 or 405, but only to callers with the admin key."""
    raise absent.refusal(request)


@probes.get("/livez", summary="Is the process alive?", response_model=Health)
async def livez() -> Response:
    """Answer as long as the process is able to."""
    return json(Health(status="live"))


@probes.get("/readyz", summary="Can texts be classified?", response_model=Health, responses=errors(503))
async def readyz(asked: Asked) -> Response:
    """Answer from when the models are loaded, which is before the socket listens, until the service is to stop."""
    if asked.service.draining:
        raise RefusalError(503, "The service is stopping; ask another.", retry_after="1")
    return json(Health(status="ready"))


@watching.get(
    "/metrics",
    summary="What was counted",
    response_class=PlainTextResponse,
    responses={200: {"description": "Text."}, **errors(401, 403, 421, 429, 500)},
)
async def prometheus(asked: Asked) -> Response:
    """Return the metrics in Prometheus's text format."""
    service = asked.service
    watched = service.settings.drift_window > 0
    shown = [
        ShownModel(model.name, model.version, model.sha256, model.bins if watched else None)
        for model in service.generation.models.values()
    ]
    found, living = metrics.read_all(service.store.folder)
    # Distances by chance are simulated, which occasionally takes some milliseconds.
    content = await asyncio.to_thread(exposition, found, living, shown)
    return Ready(content, kind=b"text/plain; version=0.0.4; charset=utf-8")


async def _classify_ahead(asked: Exchange) -> Response:
    """Answer like the route, without going through FastAPI."""

    async def answer() -> Response:
        await check_origin(asked)
        await require_key(asked)
        return await classify(asked)

    return await answered(asked, answer)


(_ROUTE,) = (route for route in texts.routes if getattr(route, "endpoint", None) is classify)
CLASSIFY_AHEAD: Final = Ahead(_ROUTE, _classify_ahead)
