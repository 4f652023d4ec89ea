"""The files for operating a gateway speak of what there is: metrics, label values, flags, files."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cg.gateway.cli import _parser
from cg.gateway.events import OriginalResent, UpstreamReplied
from cg.gateway.settings import Settings
from cg.gateway.telemetry.metrics import Metrics
from cg.gateway.telemetry.prometheus_text import render
from cg.gateway.telemetry.stats import GatewayInfo, Stats

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "operations"
METRIC = re.compile(r"\b((?:cg|process)_[a-z0-9_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'([a-z_]+)(=~|!=|=)"([^"]*)"')
OTHERS = {"up"}  # Prometheus's own


def exposed() -> dict[str, dict[str, set[str]]]:
    """Each metric of `/metrics` with its labels and the values that they have in it."""
    metrics = Metrics()
    metrics.tell(UpstreamReplied(529))
    metrics.tell(OriginalResent(400))
    metrics.tell(UpstreamReplied(200))
    stats = Stats(metrics, GatewayInfo(0.0), lambda: 0.0, store_status=lambda: {"payload_bytes": 1})
    found: dict[str, dict[str, set[str]]] = {}
    for line in render(stats.snapshot, stats.gauges()).decode().splitlines():
        match = re.match(r"([a-z0-9_]+)(?:\{(.*)\})? ", line)
        if line.startswith("#") or match is None:
            continue
        labels = found.setdefault(match[1], {})
        for name, value in re.findall(r'([a-z_]+)="([^"]*)"', match[2] or ""):
            labels.setdefault(name, set()).add(value)
    return found


def panels() -> list[dict]:
    return json.loads((FILES / "grafana-dashboard.json").read_text())["panels"]


def expressions() -> Iterator[str]:
    for panel in panels():
        for target in panel.get("targets", ()):
            yield target["expr"]
    yield from re.findall(r"^ +expr: (.+)$", (FILES / "alerts.yml").read_text(), re.MULTILINE)


def alerts() -> list[str]:
    return re.findall(r"^ +- alert: (\w+)$", (FILES / "alerts.yml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("expression", list(expressions()))
def test_every_expression_names_metrics_labels_and_values_that_exist(expression: str) -> None:
    """A dashboard of names that nobody exposes shows nothing, and an alert on one never fires."""
    there = exposed()
    named = METRIC.findall(expression)
    assert named or OTHERS & set(re.findall(r"\w+", expression))
    for metric, matchers in named:
        assert metric in there, metric
        for label, how, value in MATCHER.findall(matchers):
            if label == "job":
                continue
            assert label in there[metric], (metric, label)
            values = there[metric][label]
            alternatives = value.split("|") if how == "=~" else [value]
            for one in alternatives:
                assert any(re.fullmatch(one, known) for known in values), (metric, label, one)
    for label in re.findall(r"by \(([^)]*)\)", expression):
        for one in label.split(", "):
            assert any(one in there[metric] for metric, _ in named), one


def test_an_expression_with_a_wrong_name_is_seen() -> None:
    """The test above can fail."""
    with pytest.raises(AssertionError):
        test_every_expression_names_metrics_labels_and_values_that_exist("rate(cg_turn_total[5m])")
    with pytest.raises(AssertionError):
        test_every_expression_names_metrics_labels_and_values_that_exist('rate(cg_turns_total{reason="colder"}[5m])')


def test_the_dashboard_is_what_its_script_writes() -> None:
    """Whoever changes one changes the other; no two panels lie on each other."""
    spec = importlib.util.spec_from_file_location("grafana", FILES / "grafana.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.dashboard() == json.loads((FILES / "grafana-dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_every_alert_is_explained() -> None:
    """docs/operations.md says of each what it means and what to do, and of none that there is not."""
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.partition("## Alerts")[2].partition("\n## ")[0]
    assert re.findall(r"^### (Cg\w+)$", section, re.MULTILINE) == alerts()
    assert len(alerts()) == len(set(alerts()))


def test_the_rules_are_well_formed() -> None:
    """As YAML, and for Prometheus's own checker where it is installed."""
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    rules = yaml.safe_load((FILES / "alerts.yml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == alerts()
    for rule in rules:
        assert rule["annotations"]["summary"] and rule["labels"]["severity"] in ("page", "ticket", "info")
    scrape = yaml.safe_load((FILES / "prometheus.yml").read_text())
    assert scrape["rule_files"] == ["alerts.yml"] and scrape["scrape_configs"][0]["job_name"] == "cg-proxy"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_takes_configuration_and_rules() -> None:
    """Its own checker finds nothing."""
    done = subprocess.run(
        ["promtool", "check", "config", str(FILES / "prometheus.yml")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FILES / "cg-proxy.service").read_text().splitlines():
        if line and line[0] not in "#[":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_the_service_is_nobodys_user_and_writes_its_state_alone() -> None:
    """And its command is one that the gateway takes."""
    found = unit()
    for name, value in {
        "DynamicUser": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "NoNewPrivileges": "yes",
        "StateDirectory": "cg-proxy",
        "StateDirectoryMode": "0700",
        "CapabilityBoundingSet": "",
    }.items():
        assert found[name] == [value]
    assert "ReadWritePaths" not in found
    (command,) = found["ExecStart"]
    arguments = _parser(False).parse_args(command.split()[1:])
    assert arguments.listen == "127.0.0.1:8788"
    assert int(found["TimeoutStopSec"][0]) > Settings().stop_timeout_s


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_service(tmp_path: Path) -> None:
    """With a command that is there in the place of the installed one."""
    text = (FILES / "cg-proxy.service").read_text().replace("/opt/cg/bin/cg-proxy", sys.executable)
    copy = tmp_path / "cg-proxy.service"
    copy.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60)
    if "Failed to" in done.stderr and "cg-proxy" not in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()[:200]}")
    assert "cg-proxy.service:" not in done.stderr, done.stderr


def test_the_container_is_not_root_and_listens_on_loopback() -> None:
    """Its last user, its command, and no credential in it."""
    lines = (FILES / "Containerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users and users[-1].split(":")[0] not in ("0", "root")
    command = next(json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    assert _parser(False).parse_args(command).listen == "127.0.0.1:8788"
    assert not [line for line in lines if line.startswith(("ENV", "ARG")) and re.search("KEY|TOKEN|SECRET", line)]
