"""A server for the wire formats."""

from collections.abc import Iterator

import pytest

from tests.service.server import listening, service_of
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.models import registry
from textcls.server.service import Service
from textcls.server.settings import Settings


@pytest.fixture(scope="module")
def service(classifier: Classifier) -> Service:
    models = [registry.serve(classifier, "tickets", "3")]
    return service_of(models, Settings(max_inputs=4, max_characters=200))


@pytest.fixture(scope="module")
def service_of_several(several_labels: Classifier) -> Service:
    """A service of a model that gives a text several labels, or none; it is called topics."""
    models = [registry.serve(several_labels, "topics", "3")]
    return service_of(models, Settings(max_inputs=4, max_characters=200))


@pytest.fixture(scope="module")
def address_of_several(service_of_several: Service) -> Iterator[str]:
    with listening(service_of_several) as found:
        yield found


@pytest.fixture(scope="module")
def address(service: Service) -> Iterator[str]:
    with listening(service) as found:
        yield found


@pytest.fixture(scope="module")
def locked_address(classifier: Classifier) -> Iterator[str]:
    """The address of a server that wants a key."""
    models = [registry.serve(classifier, "tickets", "3")]
    with listening(service_of(models, keys=Keys(["key-of-the-first-client"]))) as found:
        yield found
