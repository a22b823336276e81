"""Access checks: dependencies of the routes, which can be replaced by FastAPI's `app.dependency_overrides`.

An application with its own accounts replaces `require_key` and `require_admin_key`.
"""

from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from textcls.server.admission import auth
from textcls.server.http.exchange import Exchange
from textcls.server.problems import RefusalError

# Only for the OpenAPI description: keys may come in another header as well.
_KEY: Final = HTTPBearer(auto_error=False, scheme_name="key", description="An API key, if there are any.")
_ADMIN_KEY: Final = HTTPBearer(auto_error=False, scheme_name="adminKey")


async def exchange_of(request: Request) -> Exchange:
    """Return the exchange of a request."""
    return Exchange.of(request)


Asked = Annotated[Exchange, Depends(exchange_of)]


async def check_origin(asked: Asked) -> None:
    """Refuse a request for another host, or from a page of another origin.

    Raises:
        RefusalError: it is one.
    """
    service = asked.service
    service.origins.check(asked.scope["method"], asked.headers, has_keys=bool(service.keys))


async def require_key(asked: Asked) -> None:
    """Refuse callers without an API key if keys are set, and those who exceed the limits of their key.

    Raises:
        RefusalError: the key is missing or not valid, or its limits are exceeded.
    """
    service = asked.service
    if not service.keys:
        return
    key = auth.presented(asked.scope["headers"])
    asked.key = service.keys.name(key)
    if asked.key is None:
        raise _unauthorized(asked, key)
    if service.key_limits is not None:
        service.key_limits.enter(asked.key)
        asked.entered = True


async def require_key_for_metrics(asked: Asked) -> None:
    """Refuse callers without an API key or the admin key, unless the metrics are public.

    Raises:
        RefusalError: the key is missing or not valid, or its limits are exceeded.
    """
    service = asked.service
    if not service.settings.public_metrics and auth.presented(asked.scope["headers"]) not in service.admin_keys:
        await require_key(asked)


async def require_admin_key(asked: Asked) -> None:
    """Refuse callers without the admin key.

    Raises:
        RefusalError: the key is missing or not valid, or no admin key is set.
    """
    service, key = asked.service, auth.presented(asked.scope["headers"])
    if not service.admin_keys:
        raise RefusalError(403, "Administration is off: set --admin-key-file or TEXTCLS_ADMIN_KEY to switch it on.")
    asked.key = service.admin_keys.name(key)
    if asked.key is None:
        raise _unauthorized(asked, key)


def _unauthorized(asked: Exchange, key: bytes) -> RefusalError:
    """Record that a key is refused, and return the error."""
    problem = "This key is not valid" if key else "A key is needed"
    asked.service.refusals.add(
        asked.client, path=asked.route, presented=bool(key), request_id=asked.request_id.decode()
    )
    return RefusalError(401, f"{problem}: send one as 'authorization: Bearer KEY'.", www_authenticate="Bearer")


# Dependencies of the routers. The scheme is only for the description.
WITH_KEY: Final = (Depends(check_origin), Security(_KEY), Depends(require_key))
WITH_ADMIN_KEY: Final = (Depends(check_origin), Security(_ADMIN_KEY), Depends(require_admin_key))
FOR_METRICS: Final = (Depends(check_origin), Security(_KEY), Depends(require_key_for_metrics))
FOR_ALL: Final = (Depends(check_origin),)
