"""Who answers the service's own routes. The docstrings are what the service's description says of them."""

import asyncio
from typing import TYPE_CHECKING

from textcls.server.inference import answers
from textcls.server.inference.answers import RequestReader
from textcls.server.models.registry import Served
from textcls.server.monitoring import metrics
from textcls.server.monitoring.exposition import ShownModel, exposition
from textcls.server.problems import RefusalError
from textcls.server.routes.routing import Headers, Reply, RequestContext
from textcls.server.routes.schemas import ChangedLabels, Health, ModelCard, Models, Reloaded, ShadowCard

if TYPE_CHECKING:
    from pydantic import BaseModel


def classify(headers: Headers) -> RequestReader:
    """Classify one text or a batch; with `explain`, also split each logit exactly over the tokens.

    The split is the accounting of this model's answer, not a claim about causes. The header `x-model` says which model
    answered: its name, version and SHA-256.
    """
    return answers.read


async def models(asked: RequestContext) -> Reply:
    """Say which models answer, which labels they know, and how they were calibrated."""
    generation = asked.service.generation
    first = generation.get(None)
    teaching = asked.service.teaching
    cards = [_card(served, default=served is first, teaching=teaching) for served in generation.models.values()]
    said = Models(generation=generation.number, models=cards)
    return Reply(200, answers.encode(said.model_dump(exclude_unset=True)))


def _card(served: Served, *, default: bool, teaching: bool) -> ModelCard:
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
    if info.example is not None:
        card.example = info.example
    if served.shadow is not None:
        card.shadow = ShadowCard(version=served.shadow.version, sha256=served.shadow.sha256)
    elif served.refused_shadow is not None:
        card.shadow = ShadowCard(**served.refused_shadow._asdict())
    if teaching and info.prototypes is not None and not served.published:
        card.teachable = True
    if info.scale is not None and info.shift is not None and info.thresholds is not None:
        card.scale = dict(zip(info.labels, info.scale, strict=True))
        card.shift = dict(zip(info.labels, info.shift, strict=True))
        card.thresholds = dict(zip(info.labels, info.thresholds, strict=True))
    return card


async def reload(asked: RequestContext) -> Reply:
    """Test the files and exchange the models of all workers; a bad file changes nothing, and the answer says why.

    Needs the admin key. Keys are read anew as well. A model whose set of labels is another than before is told of, or
    refused where `same_labels` is set.
    """
    done, workers = await asked.service.reload(asked.caller)
    changed = [
        ChangedLabels(model=change.model, added=list(change.added), removed=list(change.removed))
        for change in done.changes
    ]
    return reply(Reloaded(generation=done.number, workers=workers, changed_labels=changed))


async def livez(asked: RequestContext) -> Reply:
    """Answer as long as the process can."""
    return reply(Health(status="live"))


async def readyz(asked: RequestContext) -> Reply:
    """Answer once the model is loaded, which is before the socket listens, and until the service is told to stop."""
    if asked.service.draining:
        raise RefusalError(503, "The service is stopping; ask another.", retry_after="1")
    return reply(Health(status="ready"))


async def prometheus(asked: RequestContext) -> Reply:
    """Return what was counted, in Prometheus's text form."""
    service = asked.service
    watched = service.settings.drift_window > 0
    shown = [
        ShownModel(model.name, model.version, model.sha256, model.bins if watched else None)
        for model in service.generation.models.values()
    ]
    found, living = metrics.read_all(service.folder, service.counts)
    # What chance does to distances is drawn, which takes some milliseconds now and then.
    content = await asyncio.to_thread(exposition, found, living, shown)
    return Reply(200, content, b"text/plain; version=0.0.4; charset=utf-8")


def reply(said: "BaseModel") -> Reply:
    """Return an answer as JSON."""
    return Reply(200, answers.encode(said.model_dump()))
