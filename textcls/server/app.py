"""The documented routes, behind the gate."""

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp

from textcls import __version__
from textcls.server import metrics, pages, problems, wire
from textcls.server.gate import Gate
from textcls.server.problems import RefusalError
from textcls.server.schemas import (
    ChangedLabels,
    ClassifyAnswer,
    ClassifyRequest,
    ErrorAnswer,
    Health,
    ModelCard,
    Models,
    Reloaded,
)
from textcls.server.service import Service

_ABOUT: Final = {
    401: "A key is needed",
    403: "Administration is switched off",
    404: "There is no such model",
    405: "The path answers another method",
    408: "The request did not arrive in time",
    409: "The new models cannot be used; the old ones go on answering",
    413: "Too many texts, too long a text, too large a body, or too large an explained answer",
    422: "No valid JSON, or not the fields documented here",
    429: "Too busy; try again after Retry-After seconds",
    500: "An error inside the server",
    503: "Stopping",
    504: "Not done within the deadline",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer, "description": _ABOUT[status]} for status in statuses}


router: Final = APIRouter()
# For the document alone: the gate has looked at the key before any route is reached.
_KEY: Final = [Security(HTTPBearer(auto_error=False, scheme_name="key", description="An API key, if there are any."))]
_ADMIN_KEY: Final = [Security(HTTPBearer(auto_error=False, scheme_name="admin key"))]


def create_app(service: Service) -> ASGIApp:
    """Return the service as an ASGI application."""
    settings = service.settings
    app = FastAPI(
        title="textcls",
        version=__version__,
        summary="Text classification that says what each token added to the answer.",
        description=(
            f"At most {settings.max_inputs:,} texts a request, {settings.max_characters:,} characters a text and "
            f'{settings.max_body_bytes:,} bytes a body. Every error is `{{"error": {{"type", "message"}}}}`.'
        ),
        docs_url="/docs" if settings.docs else None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service = service
    app.include_router(router)
    if settings.page:
        app.include_router(pages.router)
    wire.document(app)
    problems.install(app)
    # Around the application rather than one of its middlewares: Starlette's own layers cost 4 us a request.
    gate = Gate(app, service)
    answering: ASGIApp = gate
    if settings.trusted_proxy:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        # Who asks is then the last of X-Forwarded-For that is none of these proxies.
        answering = ProxyHeadersMiddleware(gate, list(settings.trusted_proxy))  # type: ignore[arg-type,assignment]
    if settings.cors_origin:
        from starlette.middleware.cors import CORSMiddleware

        return CORSMiddleware(
            answering,
            allow_origins=settings.cors_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key", "x-request-id"],
            expose_headers=["x-model", "x-request-id", "retry-after"],
        )
    return answering


def _service(request: Request) -> Service:
    service = request.app.state.service
    if not isinstance(service, Service):
        raise TypeError("app.state.service is no Service")
    return service


@router.post(
    "/v1/classify",
    response_model=ClassifyAnswer,
    responses=_errors(401, 404, 408, 413, 422, 429, 500, 503, 504),
    dependencies=_KEY,
    summary="Classify texts",
)
async def classify(request: Request, body: ClassifyRequest) -> Response:
    """Classify one text or a batch; with `explain`, also split each logit exactly over the tokens.

    The split is the accounting of this model's answer, not a claim about causes. The header `x-model` says which model
    answered: its name, version and SHA-256.
    """
    # Documentation: the gate answers this path before FastAPI sees it.
    raise RefusalError(500, "The gate is missing in front of this route.")


@router.get("/v1/models", dependencies=_KEY, summary="List the models served", responses=_errors(401, 500))
async def models(request: Request) -> Models:
    """Say which models answer, which labels they know, and how they were calibrated."""
    generation = _service(request).generation
    cards = [
        ModelCard(
            name=served.name,
            version=served.version,
            sha256=served.sha256,
            default=served is generation.get(None),
            labels=list(served.classifier.info.labels),
            task=served.classifier.info.task,
            format_version=served.classifier.info.format_version,
            threshold=served.classifier.info.threshold,
            max_tokens=served.classifier.info.max_tokens,
            temperature=served.classifier.info.temperature,
        )
        for served in generation.models.values()
    ]
    return Models(generation=generation.number, models=cards)


@router.post(
    "/v1/admin/reload",
    dependencies=_ADMIN_KEY,
    summary="Read the model files anew",
    responses=_errors(401, 403, 409, 500),
)
async def reload(request: Request) -> Reloaded:
    """Test the files and exchange the models of all workers; a bad file changes nothing, and the answer says why.

    Needs the admin key. Keys are read anew as well. A model whose set of labels is another than before is told of, or
    refused where `same_labels` is set.
    """
    done, workers = await _service(request).reload(request.state.caller)
    return Reloaded(
        generation=done.number,
        workers=workers,
        changed_labels=[
            ChangedLabels(model=change.model, added=list(change.added), removed=list(change.removed))
            for change in done.changes
        ],
    )


@router.get("/livez", summary="Is the process alive?")
async def livez() -> Health:
    """Answer as long as the process can."""
    return Health(status="live")


@router.get("/readyz", response_model=Health, summary="Can texts be classified?", responses=_errors(503))
async def readyz(request: Request) -> Response:
    """Answer once the model is loaded, which is before the socket listens, and until the service is told to stop."""
    if _service(request).draining:
        raise RefusalError(503, "The service is stopping; ask another.", retry_after="1")
    return JSONResponse({"status": "ready"})


@router.get("/metrics", summary="Metrics of all workers", include_in_schema=False)
async def exposition(request: Request) -> Response:
    """Return what was counted, in Prometheus's text form."""
    service = _service(request)
    models = [(model.name, model.version, model.sha256) for model in service.generation.models.values()]
    content = metrics.exposition(service.folder, service.counts, models)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")
