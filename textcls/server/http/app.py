"""The service as an ASGI application: the gate, behind what reads the headers of proxies and of other origins."""

from typing import TYPE_CHECKING

from textcls.server.http.gate import Gate
from textcls.server.routes.table import table
from textcls.server.service import Service

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def create_app(service: Service) -> "ASGIApp":
    """Return the service as an ASGI application."""
    settings = service.settings
    answering: ASGIApp = Gate(service, table(settings))
    if settings.trusted_proxy:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        # Who asks is then the last of X-Forwarded-For that is none of these proxies.
        answering = ProxyHeadersMiddleware(answering, list(settings.trusted_proxy))  # type: ignore[arg-type,assignment]
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
