"""What /metrics says of the latest answers beside those to held-out rows: what `textcls drift` says of these texts."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from tests.model_metadata import metadata_of, with_held_out
from tests.service.clients import client_of, clients_of, numbers
from tests.service.processes import command, free_port, until
from tests.service.server import service, serving
from textcls import Classifier
from textcls.evaluation.drift.distance import psi
from textcls.evaluation.drift.drift import measure_drift
from textcls.evaluation.drift.summary import HeldOutSummary
from textcls.evaluation.drift.tally import Bins, bins_of
from textcls.model.artifact import HELD_OUT
from textcls.server.inference.answers import outcome
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import metrics
from textcls.server.monitoring.drift import DriftCounts, Outcome
from textcls.server.monitoring.exposition import ShownModel, exposition
from textcls.server.monitoring.metrics import Counts, read_all
from textcls.server.service import Service
from textcls.server.settings import Settings

Tickets = list[tuple[str, str]]
NEW = "frobnicate grelbix"


def said(content: bytes) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in content.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def distances(found: dict[str, float]) -> dict[str, float]:
    return {
        kind: found[f'textcls_drift_distance{{model="tickets",of="{kind}"}}']
        for kind in ("labels", "scores", "lengths")
    }


def ask_all(client: httpx.Client, texts: Sequence[str], at_once: int = 20) -> None:
    for i in range(0, len(texts), at_once):
        assert client.post("/v1/classify", json={"inputs": texts[i : i + at_once]}).status_code == 200


def outcomes(classifier: Classifier, texts: Sequence[str]) -> list[Outcome]:
    return [outcome(answer) for answer in classifier.predict(texts)]


def shown(bins: Bins | None) -> list[ShownModel]:
    return [ShownModel("tickets", "1", "0", bins)]


def worker(folder: Path, bins: Bins | None, texts: int = 1000, workers: int = 1) -> tuple[Counts, DriftCounts]:
    counts = Counts(folder)
    counts.set(metrics.GENERATION, 1)
    drift = DriftCounts(counts, texts, workers)
    drift.take_up({"tickets": bins})
    return counts, drift


# What is told


def test_distances_are_those_that_drift_tells_of_the_same_texts(watched: Classifier, tickets: Tickets) -> None:
    texts = [f"{text} {NEW}" for text, label in tickets if label == "billing"][:90]
    with serving(service(watched)) as client:
        ask_all(client, texts[:60])
        for text in texts[60:]:  # Alone, they take another way.
            ask_all(client, [text])
        found = numbers(client)
    told = measure_drift(watched, [(text, None) for text in texts])
    assert found['textcls_drift_window_texts{model="tickets"}'] == 90
    for kind, distance in told.distances.items():
        assert distances(found)[kind] == pytest.approx(distance.psi)
        by_chance = found[f'textcls_drift_distance_by_chance{{model="tickets",of="{kind}"}}']
        # At a few texts less, from fewer draws, and of the held-out shares alone.
        assert by_chance == pytest.approx(distance.by_chance, rel=0.4)
    assert told.unknown is not None
    assert found['textcls_unknown_token_share{model="tickets"}'] == pytest.approx(told.unknown.now)
    assert found['textcls_unknown_token_share_expected{model="tickets"}'] == pytest.approx(told.unknown.before)
    assert found['textcls_unknown_token_share_by_chance{model="tickets"}'] == pytest.approx(told.unknown.by_chance)
    assert found['textcls_unknown_tokens_total{model="tickets"}'] == round(
        told.unknown.now * found['textcls_tokens_total{model="tickets"}']
    )


def test_counts_by_bin_are_there_for_prometheus_to_add_up(watched: Classifier, tickets: Tickets) -> None:
    with serving(service(watched)) as client:
        ask_all(client, [text for text, _ in tickets[:40]])
        found = numbers(client)
    held_out = HeldOutSummary.of_model(watched.info)
    for kind, before in (("labels", held_out.labels), ("scores", held_out.scores.counts)):
        bins = [name for name in found if name.startswith("textcls_held_out_rows") and f'of="{kind}"' in name]
        assert [found[name] for name in bins] == list(before or ())
        now = [found[name.replace("textcls_held_out_rows", "textcls_drift_texts_total")] for name in bins]
        assert sum(now) == 40
        assert psi(list(before or ()), list(map(int, now))) == pytest.approx(distances(found)[kind])
    assert 'textcls_held_out_rows{bin="billing",model="tickets",of="labels"}' in found
    assert 'textcls_held_out_rows{bin="+Inf",model="tickets",of="lengths"}' in found


def test_before_the_first_text_there_are_counts_and_no_distances(watched: Classifier) -> None:
    with serving(service(watched)) as client:
        found = numbers(client)
    assert found['textcls_drift_window_texts{model="tickets"}'] == 0
    assert not [name for name in found if name.startswith(("textcls_drift_distance", "textcls_unknown_token_share{"))]


@pytest.fixture(scope="module")
def watched_sets(
    several_labels: Classifier, several_labels_path: Path, tickets: Tickets, tmp_path_factory: pytest.TempPathFactory
) -> Classifier:
    """The small model of several labels, with its answers to half of the tickets as those to its held-out rows."""
    answers = several_labels.predict([text for text, _ in tickets[: len(tickets) // 2]])
    probability_NC = np.array([answer.probabilities for answer in answers])
    assigned_NC = probability_NC >= np.array(several_labels.info.thresholds)
    lengths_N = np.array([answer.tokens_read for answer in answers])
    summary = HeldOutSummary.of_sets(probability_NC, assigned_NC, assigned_NC, lengths_N, None, several_labels.labels)
    path = tmp_path_factory.mktemp("sets") / "tickets.onnx"
    return Classifier.load(with_held_out(several_labels_path, summary.to_json(), path))


def test_label_sets_are_held_against_those_of_the_training_whatever_thresholds_a_request_asks_for(
    watched_sets: Classifier, tickets: Tickets
) -> None:
    texts = [f"{text} {NEW}" for text, label in tickets if label == "billing"][:60]
    with serving(service(watched_sets)) as client:
        ask_all(client, texts)
        strange = {"inputs": texts[:20], "threshold": 0.0}
        assert client.post("/v1/classify", json=strange).status_code == 200
        found = numbers(client)
    told = measure_drift(watched_sets, [(text, None) for text in texts])
    assert found['textcls_drift_window_texts{model="tickets"}'] == 60
    assert distances(found) == pytest.approx({kind: one.psi for kind, one in told.distances.items()})
    held_out = HeldOutSummary.of_model(watched_sets.info)
    assert held_out.sets is not None
    bins = [name for name in found if name.startswith("textcls_held_out_rows") and 'of="labels"' in name]
    assert [found[name] for name in bins] == list(held_out.sets.counts)
    assert bins[-1] == 'textcls_held_out_rows{bin="others",model="tickets",of="labels"}'
    named = sorted(watched_sets.labels[number] for number in held_out.sets.sets[0])
    assert json.dumps(named).replace('"', '\\"') in bins[0]


def test_a_summary_with_label_sets_of_other_labels_watches_nothing(
    watched_sets: Classifier, several_labels_path: Path, tmp_path: Path
) -> None:
    summary = json.loads(json.dumps(watched_sets.info.training[HELD_OUT]))
    summary["sets"]["sets"][0] = [len(watched_sets.labels)]
    assert bins_of(Classifier.load(with_held_out(several_labels_path, summary, tmp_path / "m.onnx")).info) is None


@pytest.mark.parametrize("kind", ["older file", "damaged", "switched off", "other labels"])
def test_a_model_that_cannot_be_watched_has_no_such_series_and_answers(
    kind: str, classifier: Classifier, watched_path: Path, watched: Classifier, tmp_path: Path
) -> None:
    asked, settings = classifier, Settings()
    if kind == "switched off":
        asked, settings = watched, Settings(drift_window=0)
    elif kind != "older file":
        summary = dict(metadata_of(watched_path)["training"][HELD_OUT])
        summary |= {"rows": 0} if kind == "damaged" else {"names_sha256": "0" * 64}
        asked = Classifier.load(with_held_out(watched_path, summary, tmp_path / "m.onnx"))
    with serving(service(asked, settings)) as client:
        ask_all(client, ["my card was charged twice"])
        found = numbers(client)
    assert found['textcls_score_count{model="tickets"}'] == 1
    assert not [name for name in found if name.startswith(("textcls_drift", "textcls_held_out", "textcls_unknown"))]


def test_the_port_of_probes_is_silent_as_well_where_watching_is_off(watched_path: Path, tmp_path: Path) -> None:
    for texts in (0, 10):
        store = GenerationStore(tmp_path, [str(watched_path)], Settings(drift_window=texts))
        store.publish()
        assert [model.bins is None for model in store.shown()] == [texts == 0]


# The window


@pytest.mark.parametrize("at_once", [1, 35])
def test_distances_rest_on_the_latest_texts_and_counts_on_all(
    watched: Classifier, tickets: Tickets, tmp_path: Path, at_once: int
) -> None:
    texts = [text for text, _ in tickets[:35]]
    bins = bins_of(watched.info)
    counts, drift = worker(tmp_path, bins, texts=10)
    for i in range(0, len(texts), at_once):
        drift.count("tickets", bins, outcomes(watched, texts[i : i + at_once]))
    found = said(exposition(*read_all(tmp_path), shown(bins)))
    # The window before began at 20, and the one that is under way at 30.
    assert found['textcls_drift_window_texts{model="tickets"}'] == 15
    told = measure_drift(watched, [(text, None) for text in texts[20:]])
    assert distances(found) == pytest.approx({kind: one.psi for kind, one in told.distances.items()})
    assert told.unknown is not None
    assert found['textcls_unknown_token_share{model="tickets"}'] == pytest.approx(told.unknown.now)
    assert sum(value for name, value in found.items() if "drift_texts" in name and 'of="scores"' in name) == 35
    counts.close()


# Several workers


def test_workers_add_up_and_what_a_dead_one_has_counted_stays(
    watched: Classifier, tickets: Tickets, tmp_path: Path
) -> None:
    bins = bins_of(watched.info)
    texts = [text for text, _ in tickets[:60]]
    answered = outcomes(watched, texts)
    (one, drift_one), (two, drift_two) = (worker(tmp_path, bins, workers=2) for _ in range(2))
    drift_one.count("tickets", bins, answered[:25])
    drift_two.count("tickets", bins, answered[25:50])
    two.close()
    again, drift_again = worker(tmp_path, bins, workers=2)
    drift_again.count("tickets", bins, answered[50:])
    found = said(exposition(*read_all(tmp_path), shown(bins)))
    assert found['textcls_drift_window_texts{model="tickets"}'] == 60
    told = measure_drift(watched, [(text, None) for text in texts])
    assert distances(found) == pytest.approx({kind: one.psi for kind, one in told.distances.items()})
    one.close()
    again.close()


def test_each_of_several_workers_has_its_share_of_the_window(
    watched: Classifier, tickets: Tickets, tmp_path: Path
) -> None:
    bins = bins_of(watched.info)
    counts, drift = worker(tmp_path, bins, texts=20, workers=3)
    for answered in outcomes(watched, [text for text, _ in tickets[:20]]):
        drift.count("tickets", bins, [answered])
    # Windows of 7 have begun at 7 and 14.
    assert said(exposition(*read_all(tmp_path), shown(bins)))['textcls_drift_window_texts{model="tickets"}'] == 13
    counts.close()


def test_processes_that_answer_are_added_up_on_the_port_of_probes(watched_path: Path, tickets: Tickets) -> None:
    port = free_port()
    arguments = (watched_path, "--workers", "2", "--probe-port", str(port))
    texts = [text for text, _ in tickets[:80]]
    with command(*arguments) as (_, url), clients_of(url) as client, client_of(f"http://127.0.0.1:{port}") as probes:
        ask_all(client, texts, at_once=4)
        found = until(lambda: (n := numbers(probes))['textcls_drift_window_texts{model="tickets"}'] == 80 and n)
        assert distances(numbers(client)) == distances(found)
    told = measure_drift(Classifier.load(watched_path), [(text, None) for text in texts])
    assert distances(found) == pytest.approx({kind: one.psi for kind, one in told.distances.items()})


# Exchanged models


def test_a_model_with_another_summary_is_counted_anew_and_the_same_one_goes_on(
    watched: Classifier, watched_path: Path, held_out: HeldOutSummary, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    model = Path(shutil.copy(watched_path, tmp_path / "tickets.onnx"))
    store = GenerationStore(tmp_path / "run", [str(model)], Settings())
    store.publish()
    live = Service.of(store, Settings())
    window = 'textcls_drift_window_texts{model="tickets"}'
    with serving(live) as client:

        def reload() -> None:
            store.publish()
            until(lambda: live.generation.number == store.number())

        ask_all(client, ["my card was charged twice"] * 3)
        model.write_bytes(watched_path.read_bytes())
        reload()
        ask_all(client, ["my card was charged twice"] * 3)
        assert numbers(client)[window] == 6
        with_held_out(watched_path, replace(held_out, accuracy=0.9).to_json(), model)
        reload()
        assert numbers(client)[window] == 0
        ask_all(client, ["my card was charged twice"])
        assert numbers(client)[window] == 1
        assert said(exposition(*read_all(store.folder), store.shown()))[window] == 1


def test_answers_of_a_model_that_is_no_longer_served_are_not_counted_in_the_bins_of_the_next(
    watched: Classifier, held_out: HeldOutSummary, tmp_path: Path
) -> None:
    old, new = bins_of(watched.info), Bins(replace(held_out, accuracy=0.9), watched.labels)
    counts, drift = worker(tmp_path, old)
    late, drift_late = worker(tmp_path, old)
    answered = outcomes(watched, ["my card was charged twice"])
    for each in (drift, drift_late):
        each.count("tickets", old, answered)
    drift.take_up({"tickets": new})
    drift.count("tickets", old, answered)
    # Nor are those of a worker that has not yet taken up the next.
    assert said(exposition(*read_all(tmp_path), shown(new)))['textcls_drift_window_texts{model="tickets"}'] == 0
    drift.count("tickets", new, answered)
    assert said(exposition(*read_all(tmp_path), shown(new)))['textcls_drift_window_texts{model="tickets"}'] == 1
    counts.close()
    late.close()


def test_models_that_are_exchanged_again_and_again_need_no_more_room(
    watched: Classifier, held_out: HeldOutSummary, tmp_path: Path
) -> None:
    counts, drift = worker(tmp_path, bins_of(watched.info))
    used = len(read_all(tmp_path)[0][0])
    for i in range(200):
        drift.take_up({"tickets": Bins(replace(held_out, accuracy=i / 1000), watched.labels)})
    assert len(read_all(tmp_path)[0][0]) == used
    counts.close()


def test_where_there_is_no_room_for_its_counts_a_model_answers_unwatched(watched: Classifier) -> None:
    live = service(watched)
    for i in range(40_000):
        live.counts.add(metrics.PREDICTIONS, "model", str(i))
    live.drift.take_up({"more": bins_of(watched.info)})
    live.drift.count("more", bins_of(watched.info), outcomes(watched, ["my card was charged twice"]))
    found = said(exposition(*read_all(live.store.folder), [ShownModel("more", "1", "0", bins_of(watched.info))]))
    assert found['textcls_drift_window_texts{model="more"}'] == 0
