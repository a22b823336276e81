"""What an operator is given: manifests, dashboard, alerts, the smoke check and the table of settings fit the code."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from textcls import Classifier
from textcls.server import metrics, registry
from textcls.server.auth import Keys
from textcls.server.listening import listen
from textcls.server.server import Server
from textcls.server.service import Service
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


def test_the_health_check_of_the_image_asks_the_port_that_is_set(classifier: Classifier) -> None:
    (line,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    _, *arguments = json.loads(line)
    service = Service(registry.generation(1, [registry.serve(classifier)]), Settings())
    with listen("127.0.0.1", 0) as listener:
        server = Server(service, drain_seconds=0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        for port, healthy in ((str(listener.getsockname()[1]), True), ("1", False)):
            environment = {**os.environ, "TEXTCLS_SERVE_PORT": port, "no_proxy": "127.0.0.1"}
            done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=False)
            assert (done.returncode == 0) == healthy, done.stderr
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("key", ["", KEY])
def test_the_smoke_check_passes_and_notices_what_is_missing(
    classifier: Classifier, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    smoke = script(DEPLOY / "smoke.py")
    monkeypatch.setattr(smoke, "KEY", key)
    service = Service(registry.generation(1, [registry.serve(classifier)]), Settings(), keys=Keys([key] if key else []))
    with listen("127.0.0.1", 0) as listener:
        server = Server(service, drain_seconds=0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert smoke.problems(url) == []
        service.draining = True
        assert "/readyz answers 503" in smoke.problems(url)[0]
        server.should_exit = True
        thread.join(20)
