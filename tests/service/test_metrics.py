"""What /metrics says: requests, answers and reloads, added up over workers."""

import fcntl
from pathlib import Path

import pytest

import textcls
from tests.service.clients import ADMIN, KEYS, bearer, numbers, post
from tests.service.server import service, serving
from textcls import Classifier
from textcls.server.admission.auth import Keys
from textcls.server.models import registry
from textcls.server.monitoring import metrics
from textcls.server.monitoring.exposition import ShownModel, exposition
from textcls.server.monitoring.metrics import Counts, read_all
from textcls.server.settings import Settings


def test_metrics_count_requests_texts_tokens_labels_and_scores(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        post(client)
        post(client, b'{"inputs": ["my card was charged twice", "hello"], "threshold": 1}')
        post(client, b"no json")
        client.get("/nowhere")
        found = numbers(client)
    assert found['textcls_requests_total{route="/v1/classify",status="200"}'] == 2
    assert found['textcls_requests_total{route="/v1/classify",status="422"}'] == 1
    assert found['textcls_requests_total{route="other",status="404"}'] == 1
    assert found['textcls_request_duration_seconds_count{route="/v1/classify"}'] == 3
    assert found['textcls_batch_size_sum{model="tickets"}'] == 3
    assert found['textcls_tokens_total{model="tickets"}'] == 11
    assert found['textcls_abstentions_total{model="tickets"}'] == 2
    assert found['textcls_predictions_total{label="billing",model="tickets"}'] >= 2
    assert found['textcls_score_count{model="tickets"}'] == 3
    assert found["textcls_requests_in_progress"] == 1
    assert found["textcls_workers"] == 1
    assert found[f'textcls_build_info{{version="{textcls.__version__}"}}'] == 1
    assert sum(value for name, value in found.items() if name.startswith("textcls_model_info")) == 1


def test_what_alerts_wait_for_is_counted_from_zero_before_it_happens(classifier: Classifier) -> None:
    with serving(service(classifier)) as client:
        found = numbers(client)
    for result in ("done", "refused"):
        assert found[f'textcls_reloads_total{{result="{result}"}}'] == 0
    for reason in ("400", "408", "429", "answer not taken"):
        assert found[f'textcls_connections_closed_total{{reason="{reason}"}}'] == 0


def test_metrics_are_public_only_if_told(classifier: Classifier) -> None:
    settings = Settings(public_metrics=True)
    with serving(service(classifier, settings, keys=Keys(KEYS))) as client:
        assert client.get("/metrics").status_code == 200
    with serving(service(classifier, keys=Keys(KEYS), admin_keys=Keys([ADMIN]))) as client:
        assert client.get("/metrics", headers=bearer(ADMIN)).status_code == 200


def test_counts_of_all_workers_add_up_and_those_of_the_dead_stay(tmp_path: Path, classifier: Classifier) -> None:
    model = registry.serve(classifier, "tickets")
    served = [ShownModel(model.name, model.version, model.sha256)]
    one, two = Counts(tmp_path), Counts(tmp_path)
    for counts, status in ((one, "200"), (two, "200"), (two, "422")):
        counts.add(metrics.REQUESTS, "/v1/classify", status)
        counts.observe(metrics.SCORES, [0.55], "tickets")
        counts.add(metrics.IN_PROGRESS)
        counts.set(metrics.GENERATION, 1)
    two.close()
    text = exposition(*read_all(tmp_path), served).decode()
    assert 'textcls_requests_total{route="/v1/classify",status="200"} 2.0' in text
    assert 'textcls_requests_total{route="/v1/classify",status="422"} 1.0' in text
    assert 'textcls_score_bucket{le="0.6",model="tickets"} 3.0' in text
    assert "textcls_requests_in_progress 1.0" in text
    assert "textcls_workers 1.0" in text
    again = Counts(tmp_path)
    assert len(list(tmp_path.glob("*.counts"))) == 2
    again.add(metrics.REQUESTS, "/v1/classify", "200")
    text = exposition(*read_all(tmp_path), served).decode()
    assert 'textcls_requests_total{route="/v1/classify",status="200"} 3.0' in text
    assert "textcls_requests_in_progress 1.0" in text
    one.close()
    again.close()


def test_a_worker_that_is_just_starting_or_serves_nothing_spoils_no_metrics(
    tmp_path: Path, classifier: Classifier
) -> None:
    model = registry.serve(classifier, "tickets")
    served = [ShownModel(model.name, model.version, model.sha256)]
    own, supervisor = Counts(tmp_path), Counts(tmp_path)
    own.set(metrics.GENERATION, 3)
    supervisor.add(metrics.RELOADS, "done")
    # Between the opening of its file and its first number.
    with (tmp_path / "2.counts").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        text = exposition(*read_all(tmp_path), served).decode()
        assert metrics.generations(tmp_path) == [3]
    assert "textcls_workers 1.0" in text
    assert "textcls_generation 3.0" in text
    assert 'textcls_reloads_total{result="done"} 1.0' in text
    own.close()
    supervisor.close()


def test_a_count_that_cannot_be_named_yet_is_logged_and_shows_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counts = metrics.Counts(tmp_path)
    counts.set(metrics.GENERATION, 1)
    with monkeypatch.context() as patched, Path("/dev/full").open("ab", buffering=0) as full:
        patched.setattr(counts, "_names", full.fileno())
        counts.add(metrics.TOKENS, "a")
    # Of which half was written.
    with (tmp_path / "0.names").open("ab") as names:
        names.write(b'\n[["textcls_tokens", "a')
    assert "has no room for the name of a new count: No space left on device" in caplog.text
    counts.add(metrics.TOKENS, "b")
    (found,), _ = metrics.read_all(tmp_path)
    assert found[("textcls_tokens", "a")] == found[("textcls_tokens", "b")] == [1.0]
    counts.close()


def test_more_labels_than_there_is_room_for_are_answered_but_not_counted(tmp_path: Path) -> None:
    counts = Counts(tmp_path)
    for i in range(40_000):
        counts.add(metrics.PREDICTIONS, "model", str(i))
    (found,), _ = read_all(tmp_path)
    assert len(found) < 40_000
    assert {n for key, (n,) in found.items() if key[0] == metrics.PREDICTIONS.name} == {1.0}
    counts.close()
