"""The routes: thin over `Classifier`, with inference off the event loop."""

import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, FastAPI, Request, Response

from textcls import __version__
from textcls.classifier import Classifier
from textcls.server import answers, problems
from textcls.server.limits import BodyLimit, Limits
from textcls.server.schemas import ClassifyAnswer, ClassifyRequest, ErrorAnswer, Health, ModelCard, Models

_ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    413: {"model": ErrorAnswer, "description": "Too many texts, too long a text, or too large a body"},
    422: {"model": ErrorAnswer, "description": "No valid JSON, or not the fields documented here"},
    500: {"model": ErrorAnswer, "description": "An error inside the server"},
}
router: Final = APIRouter()


@dataclass(frozen=True, slots=True)
class Service:
    """What the routes share.

    Attributes:
        classifier: the model served.
        limits: bounds of one request.
        threads: how many requests are worked on at once.
    """

    classifier: Classifier
    limits: Limits
    threads: CapacityLimiter


def create_app(classifier: Classifier, limits: Limits) -> FastAPI:
    """Return the service of one model as an ASGI application."""
    app = FastAPI(
        title="textcls",
        version=__version__,
        summary="Text classification that says what each token added to the answer.",
        description=(
            f"At most {limits.max_inputs:,} texts a request, {limits.max_characters:,} characters a text and "
            f'{limits.max_body_bytes:,} bytes a body. Every error is `{{"error": {{"type", "message"}}}}`.'
        ),
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = Service(classifier, limits, CapacityLimiter(os.cpu_count() or 1))
    app.include_router(router)
    app.add_middleware(BodyLimit, limits=limits)
    problems.install(app)
    return app


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


@router.post("/v1/classify", response_model=ClassifyAnswer, responses=_ERRORS, summary="Classify texts")
async def classify(request: Request, body: ClassifyRequest) -> Response:
    """Classify one text or a batch; with `explain`, also split each logit exactly over the tokens.

    The split is the accounting of this model's answer, not a claim about causes.
    """
    service = _service(request)
    service.limits.check(body.inputs)
    content = await to_thread.run_sync(answers.classify, service.classifier, body, limiter=service.threads)
    return Response(content, HTTPStatus.OK, media_type="application/json")


@router.get("/v1/models", summary="List the models served")
async def models(request: Request) -> Models:
    """Say which model answers, which labels it knows, and how it was calibrated."""
    classifier = _service(request).classifier
    info = classifier.info
    card = ModelCard(
        name=classifier.path.stem,
        labels=list(info.labels),
        task=info.task,
        format_version=info.format_version,
        threshold=info.threshold,
        max_tokens=info.max_tokens,
        temperature=info.temperature,
    )
    return Models(models=[card])


@router.get("/livez", summary="Is the process alive?")
async def livez() -> Health:
    """Answer as long as the process can."""
    return Health(status="live")


@router.get("/readyz", summary="Can texts be classified?")
async def readyz() -> Health:
    """Answer once the model is loaded, which is before the socket listens."""
    return Health(status="ready")
