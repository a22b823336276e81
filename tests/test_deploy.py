"""What an operator is given: manifests, dashboard, alerts, the smoke check and the table of settings fit the code."""

import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.service.processes import free_port
from tests.service.server import listening, service_of
from textcls import Classifier
from textcls.cli import main
from textcls.cli.fetch import fetch as fetch_command
from textcls.server.admission.auth import Keys
from textcls.server.models import registry
from textcls.server.models.store import GenerationStore
from textcls.server.monitoring import metrics
from textcls.server.processes.probes import probes
from textcls.server.settings import Settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
KEY = "key-of-the-smoke-check"


def script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_settings_is_that_of_the_code() -> None:
    found = script(ROOT / "scripts" / "settings_table.py")
    assert (ROOT / "deploy" / "settings.md").read_text(encoding="utf-8") == found.document()


def test_dashboard_and_alerts_name_metrics_that_there_are() -> None:
    families = [each for each in vars(metrics).values() if isinstance(each, metrics.Family)]
    known = {"textcls_workers", "textcls_model_info"}
    for family in families:
        ends = ("_bucket", "_sum", "_count") if family.bounds else ("",) if family.gauge else ("_total",)
        known |= {family.name + end for end in ends}
    panels = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())["panels"]
    text = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    text += (DEPLOY / "alerts.yaml").read_text()
    named = set(re.findall(r"\btextcls_[a-z_]+", text))
    assert len(named) > 8
    assert named <= known


def test_manifests_name_settings_that_there_are() -> None:
    known = {f"TEXTCLS_SERVE_{name.upper()}" for name in Settings.__dataclass_fields__}
    known |= {"TEXTCLS_SERVE_MODELS", "TEXTCLS_CONFIG", "TEXTCLS_API_KEYS", "TEXTCLS_ADMIN_KEY", "TEXTCLS_API_KEY"}
    files = [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.md"), ROOT / "Dockerfile", ROOT / "deploy" / "settings.md"]
    named = {name for path in files for name in re.findall(r"\bTEXTCLS_[A-Z_]+[A-Z]", path.read_text())}
    assert {"TEXTCLS_SERVE_WORKERS", "TEXTCLS_SERVE_API_KEYS_FILE"} <= named
    assert named <= known


def test_every_alert_is_in_the_runbook() -> None:
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    alerts = re.findall(r"alert: (\w+)", (DEPLOY / "alerts.yaml").read_text())
    assert alerts
    assert [alert for alert in alerts if f"`{alert}`" not in runbook] == []


def manifests(name: str = "textcls.yaml") -> dict[str, Any]:
    """The objects of a manifest by their kind."""
    text = (DEPLOY / "kubernetes" / name).read_text(encoding="utf-8")
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def containers() -> list[dict[str, Any]]:
    (one,) = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    (other,) = manifests("kserve.yaml")["InferenceService"]["spec"]["predictor"]["containers"]
    return [one, other]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here (Debian: prometheus)")
def test_each_alert_comes_when_it_should_and_none_on_a_quiet_day() -> None:
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yaml"], cwd=DEPLOY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
    tests = yaml.safe_load((DEPLOY / "alerts_test.yaml").read_text())["tests"]
    tried = {each["alertname"] for test in tests for each in test.get("alert_rule_test", ()) if each.get("exp_alerts")}
    assert tried == {rule["alert"] for rule in rules}
    assert {each["alertname"] for each in tests[0]["alert_rule_test"]} == tried


def test_alerts_know_the_job_by_the_name_that_prometheus_gives_it() -> None:
    named = set(re.findall(r'job="(\w+)"', (DEPLOY / "alerts.yaml").read_text()))
    for path in (DEPLOY / "prometheus.yaml", DEPLOY / "kubernetes" / "prometheus.yaml"):
        (job,) = yaml.safe_load(path.read_text())["scrape_configs"]
        assert {job["job_name"]} == named


@pytest.mark.parametrize(
    ("address", "scraped"), [("10.0.0.7:8000", "10.0.0.7:81"), ("[fd00::1]:8000", "[fd00::1]:81"), ("a", "a:81")]
)
def test_pods_are_scraped_at_the_port_of_their_annotation(address: str, scraped: str) -> None:
    annotations = manifests()["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"].isdigit()
    (job,) = yaml.safe_load((DEPLOY / "kubernetes" / "prometheus.yaml").read_text())["scrape_configs"]
    (rule,) = [rule for rule in job["relabel_configs"] if rule.get("target_label") == "__address__"]
    assert rule["source_labels"][1] == "__meta_kubernetes_pod_annotation_prometheus_io_port"
    found = re.fullmatch(rule["regex"], f"{address};81")
    assert found
    assert found.expand(rule["replacement"].replace("$", "\\")) == scraped


def test_one_slow_answer_takes_no_pod_out_of_service_and_draining_outlasts_what_does() -> None:
    drain = float(manifests()["ConfigMap"]["data"]["TEXTCLS_SERVE_DRAIN_SECONDS"])
    for container in containers():
        probe = container["readinessProbe"]
        assert probe["failureThreshold"] >= 3
        assert probe["timeoutSeconds"] >= 2
        assert probe["periodSeconds"] * probe["failureThreshold"] <= drain
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > drain + Settings().stop_seconds


def test_the_network_policy_lets_spans_and_questions_for_names_through_and_nothing_else() -> None:
    names, spans = manifests()["NetworkPolicy"]["spec"]["egress"]
    assert {(port["port"], port["protocol"]) for port in names["ports"]} == {(53, "UDP"), (53, "TCP")}
    (to,) = names["to"]
    assert to["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"}
    (to,) = spans["to"]
    (label,) = to["podSelector"]["matchLabels"]
    assert f"`{label}:" in (DEPLOY / "README.md").read_text(encoding="utf-8")
    # The port is that to which the exporter sends by default.
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    assert [port["port"] for port in spans["ports"]] == [int(exporter.DEFAULT_ENDPOINT.rpartition(":")[2].strip("/"))]
    assert ":4318" in (DEPLOY / "kubernetes" / "textcls.yaml").read_text()


def test_pods_grow_by_a_gauge_that_there_is_and_in_place_of_the_other_autoscaler() -> None:
    gauges = {each.name for each in vars(metrics).values() if isinstance(each, metrics.Family) and each.gauge}
    other, this = manifests()["HorizontalPodAutoscaler"], manifests("autoscaling.yaml")["HorizontalPodAutoscaler"]
    assert this["metadata"] == other["metadata"]
    assert this["spec"]["scaleTargetRef"] == other["spec"]["scaleTargetRef"]
    names = {each["pods"]["metric"]["name"] for each in this["spec"]["metrics"] if each["type"] == "Pods"}
    assert names
    assert names <= gauges


# Models from a store


def merged(base: Any, more: Any) -> Any:
    """An object with what is applied on top of it, as a server of Kubernetes does: lists by name."""
    if isinstance(base, dict) and isinstance(more, dict):
        return base | {key: merged(base[key], value) if key in base else value for key, value in more.items()}
    if not isinstance(base, list):
        return more
    found = {each.get("name"): each for each in base}
    for each in more:
        found[each["name"]] = merged(found[each["name"]], each) if each["name"] in found else each
    return list(found.values())


def fetching() -> dict[str, Any]:
    """The Deployment whose models come from a store."""
    found: dict[str, Any] = merged(manifests()["Deployment"], manifests("fetched-models.yaml")["Deployment"])
    return found


@pytest.mark.parametrize("name", ["textcls.yaml", "autoscaling.yaml", "fetched-models.yaml"])
def test_manifests_fit_the_schemas_of_kubernetes(name: str, tmp_path: Path) -> None:
    program = shutil.which("kubernetes-validate", path=str(ROOT / ".venv-deploy" / "bin"))
    if program is None:
        pytest.skip("kubernetes-validate is not here (make deploy)")
    objects = manifests(name)
    if name == "fetched-models.yaml":
        objects["Deployment"] = fetching()
    path = tmp_path / name
    path.write_text(yaml.safe_dump_all(objects.values()))
    done = subprocess.run([program, "--strict", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_pod_fetches_by_its_hash_what_it_serves_and_cannot_change_it_then() -> None:
    pod = fetching()["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (first,) = pod["initContainers"]
    (folder,) = [each for each in container["volumeMounts"] if each["name"] == "models"]
    assert folder["readOnly"]
    assert folder["mountPath"] in re.findall(r"TEXTCLS_SERVE_MODELS=(\S+)", (ROOT / "Dockerfile").read_text())
    assert "models" in {each["name"] for each in pod["volumes"]}
    assert first["securityContext"] == container["securityContext"]
    assert first["command"] == ["textcls", "fetch"]
    # Below its parent: a command keeps the options of help with which it is first asked.
    parent = main.make_context("textcls", ["fetch", *first["args"]])
    found = fetch_command.make_context("fetch", list(first["args"]), parent=parent).params
    assert Path(found["output"]).parent == Path(folder["mountPath"])
    assert registry.resolve([str(found["output"])])[0].version == "2026-11-22"
    assert len(found["sha256"]) == 64


def test_the_proxy_asks_another_copy_and_no_more_than_the_service_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert f"client_max_body_size {Settings().max_body_bytes};" in text
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert float(seconds) > Settings().request_seconds
    assert "proxy_next_upstream error timeout non_idempotent;" in text
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not here (Debian: nginx-light)")
    own = tmp_path / "nginx.conf"
    own.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ include {DEPLOY}/nginx.conf; }}\n")
    done = subprocess.run([nginx, "-t", "-q", "-c", str(own)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_benchmark_of_copies_runs_the_configuration_that_is_deployed(
    benchmark_module: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    replicas = benchmark_module("replicas")
    deployed = (DEPLOY / "nginx.conf").read_text()
    replicas.configuration([8001, 8002], 8790, tmp_path, again=True)
    run = (tmp_path / "textcls.conf").read_text()
    changed = {line.strip() for line in run.splitlines()} - {line.strip() for line in deployed.splitlines()}
    options = "max_fails=1 fail_timeout=2s;"
    servers = {f"server 127.0.0.1:{port} {options}" for port in (8001, 8002)}
    assert changed == {*servers, "listen 127.0.0.1:8790;"}
    replicas.configuration([8001, 8002], 8790, tmp_path, again=False)
    assert "proxy_next_upstream error timeout;" in (tmp_path / "textcls.conf").read_text()


def test_pods_take_up_keys_by_themselves_from_files_that_are_replaced() -> None:
    assert float(manifests()["ConfigMap"]["data"]["TEXTCLS_SERVE_WATCH_SECONDS"]) > 0
    container = containers()[0]
    paths = {each["value"] for each in container["env"] if each["name"].endswith("_FILE")}
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "keys"]
    assert {str(Path(path).parent) for path in paths} == {mount["mountPath"]}
    # Of a file that is mounted by itself the kubelet never changes the content.
    assert "subPath" not in mount


# The image


def packages(path: Path) -> dict[str, list[str]]:
    """Requirements, such as `numpy==2.4.6`, with their hashes."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return {line[0].lower(): [each for each in line[1:] if each.startswith("--hash=sha256:")] for line in lines}


def normalised(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", requirement.partition("==")[0]).lower()


def test_every_package_of_the_image_is_fixed_by_hashes_in_the_version_that_is_tested() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    tested = {normalised(line): line.partition("==")[2] for line in text.splitlines() if "==" in line}
    for path in (DEPLOY / "locks").glob("*.txt"):
        found = packages(path)
        assert all(found.values()), path
        assert {normalised(each): each.partition("==")[2] for each in found}.items() <= tested.items()
        assert "://" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("lock", "extras"), [("serve", {"serve"}), ("serve-otel", {"serve", "otel"}), ("serve-store", {"serve", "parquet"})]
)
def test_the_locks_hold_what_the_service_needs(lock: str, extras: set[str]) -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    names = {normalised(re.split(r"[<>=;\[ ]", each)[0]) for each in needed}
    assert names <= {normalised(each) for each in packages(DEPLOY / "locks" / f"{lock}.txt")}


def test_the_image_installs_nothing_but_what_the_locks_name() -> None:
    installer = (ROOT / "scripts" / "install_service.sh").read_text(encoding="utf-8")
    # Its own wheel is the one thing without a hash, and comes with neither dependencies nor an index.
    for line in re.findall(r"-m pip install (?:.*\\\n)*.*", installer):
        assert "--require-hashes" in line or ("--no-deps" in line and "--no-index" in line)
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "scripts/install_service.sh /opt/textcls" in dockerfile
    assert "pip install" not in dockerfile


def test_base_and_image_can_be_named_by_their_digests() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) == ["${BASE}"] * 2
    for container in containers():
        assert re.fullmatch(r"[a-z./-]+@sha256:[0-9a-f]{64}", container["image"])
    for service in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].values():
        assert re.match(r"\$\{[A-Z]+_IMAGE:-", service["image"])


SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found on PyPI and could not be audited"}
SAFE = {"name": "rich", "version": "15.0.0", "vulns": []}
VULNERABLE = {
    "name": "click",
    "version": "8.5.1",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["8.5.2"], "aliases": [], "description": ""}],
}


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ([SAFE], 0, "scan: serve: 1 of 1 packages looked up"),
        ([SAFE, VULNERABLE], 1, "scan: serve: click 8.5.1 is vulnerable: PYSEC-1, mended in 8.5.2"),
        ([SAFE, SKIPPED], 0, "1 of 2 packages looked up; the database does not know numpy"),
        ([SKIPPED], 0, "scan: serve: the scan for vulnerabilities was skipped: the database knows none of 1 packages"),
        (None, 0, "scan: serve: the scan for vulnerabilities was skipped: Failed to connect"),
    ],
    ids=["safe", "vulnerable", "unknown", "mirror", "offline"],
)
def test_a_scan_that_found_nothing_is_told_apart_from_one_that_could_not_ask(
    tmp_path: Path, found: list[dict[str, Any]] | None, code: int, said: str
) -> None:
    program = tmp_path / "pip-audit"
    written = json.dumps({"dependencies": found})
    lines = (
        ["echo Failed to connect >&2; exit 1"]
        if found is None
        else ['while [ "$1" != --output ]; do shift; done', f"echo '{written}' > \"$2\"", f"exit {code}"]
    )
    program.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    line = [sys.executable, str(ROOT / "scripts" / "scan.py"), str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert said in done.stdout


def test_probes_and_prometheus_ask_the_port_that_is_theirs_and_nobody_else_can() -> None:
    (port,) = re.findall(r"TEXTCLS_SERVE_PROBE_PORT=(\d+)", (ROOT / "Dockerfile").read_text())
    deployed = manifests()
    pod = deployed["Deployment"]["spec"]["template"]
    assert deployed["ConfigMap"]["data"]["TEXTCLS_SERVE_PROBE_PORT"] == port
    assert pod["metadata"]["annotations"]["prometheus.io/port"] == port
    container = containers()[0]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports["probes"] == int(port) != ports["http"]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[kind]["httpGet"]["port"] == "probes"
    assert [each["targetPort"] for each in deployed["Service"]["spec"]["ports"]] == ["http"]
    clients, monitoring = deployed["NetworkPolicy"]["spec"]["ingress"]
    assert [each["port"] for each in clients["ports"]] == ["http"]
    assert [each["port"] for each in monitoring["ports"]] == ["probes"]
    for (label,) in (each["from"][0]["namespaceSelector"]["matchLabels"] for each in (clients, monitoring)):
        assert f"`{label}:" in (DEPLOY / "README.md").read_text(encoding="utf-8")
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["textcls"]
    assert composed["environment"]["TEXTCLS_SERVE_PROBE_PORT"] == port
    assert all(not each.endswith(f":{port}") for each in composed["ports"])
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"textcls:{port}"]}]


def test_the_health_check_of_the_image_asks_the_port_that_is_set(model_path: Path, tmp_path: Path) -> None:
    (line,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    _, *arguments = json.loads(line)
    store = GenerationStore(tmp_path, [str(model_path)], Settings())
    store.publish()
    counts = metrics.Counts(tmp_path)
    counts.set(metrics.GENERATION, 1)
    counts.set(metrics.HEARTBEAT, time.monotonic() + 60)
    found = free_port()
    with probes(store, Settings(probe_port=found)):
        for port, healthy in ((found, True), (1, False)):
            environment = {**os.environ, "TEXTCLS_SERVE_PROBE_PORT": str(port), "no_proxy": "127.0.0.1"}
            done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
            assert (done.returncode == 0) == healthy, done.stderr
    counts.close()


def test_the_smoke_check_asks_each_kind_of_model_as_it_wants_to_be_asked(
    several_labels: Classifier, two_columns: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = script(DEPLOY / "smoke.py")
    monkeypatch.setattr(smoke, "KEY", "")
    for model in (several_labels, two_columns):
        with listening(service_of([registry.serve(model)])) as url:
            assert smoke.problems(url) == []


@pytest.mark.parametrize("key", ["", KEY])
def test_the_smoke_check_passes_and_notices_what_is_missing(
    classifier: Classifier, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = script(DEPLOY / "smoke.py")
    monkeypatch.setattr(smoke, "KEY", key)
    service = service_of([registry.serve(classifier)], keys=Keys([key] if key else []))
    with listening(service) as url:
        assert smoke.problems(url) == []
        monkeypatch.setattr(smoke, "KEY", key and key[::-1])
        assert len(smoke.problems(url)) == bool(key)
        monkeypatch.setattr(smoke, "KEY", key)
        service.draining = True
        assert "/readyz answers 503" in smoke.problems(url)[0]
