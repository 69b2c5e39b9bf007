"""The operators' files name only metrics, labels, options, settings, paths and ports that exist."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tcpwin.cli.program import cli
from tcpwin.watch import Metrics
from tcpwin_web import Settings, metrics

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tcpwin" / "docs" / "operators"
DASHBOARD = json.loads((FILES / "grafana-dashboard.json").read_text(encoding="utf8"))
GROUPS = yaml.safe_load((FILES / "prometheus-rules.yml").read_text(encoding="utf8"))["groups"]
MANIFESTS = {each["kind"]: each for each in yaml.safe_load_all((FILES / "kubernetes.yaml").read_text(encoding="utf8"))}
LABELS = {
    "tcpwin_watch_problems": {"limit"},
    "tcpwin_watch_strikes_total": {"rule"},
    "tcpwin_requests_total": {"status"},
    "tcpwin_analyses_total": {"status"},
    "tcpwin_waiting": {"kind"},
    "tcpwin_taken": {"kind"},
}
"""The labels that the files use, besides Prometheus' own."""


def exported() -> dict[str, set[str]]:
    """Return the names of all samples that recorder and service may export, with their labels."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(Metrics().text() + "\n" + generate_latest(metrics.REGISTRY).decode()):
        endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        found |= {family.name + ending: set() for ending in endings}
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    for each in (metrics.REQUESTS, metrics.ANALYSES, metrics.WAITING, metrics.TAKEN):
        (family,) = each.describe()
        found[family.name + ("_total" if family.type == "counter" else "")] |= {*each._labelnames}
    found["tcpwin_watch_strikes_total"].add("rule")
    return found


def expressions() -> list[tuple[str, str]]:
    """Return each query, with the text that shows its result."""
    panels = [
        (target["expr"], target["legendFormat"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", [])
    ]
    rules = [(rule["expr"], " ".join(rule["annotations"].values())) for group in GROUPS for rule in group["rules"]]
    variables = [(each["query"]["query"], "") for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    return [*panels, *rules, *variables]


def test_the_queries_name_exported_metrics() -> None:
    names = exported()
    used = {name for query, _ in expressions() for name in re.findall(r"\btcpwin_\w+", query)}
    assert len(used) > 12
    assert used - set(names) == set()
    assert {name: LABELS[name] - names[name] for name in LABELS if LABELS[name] - names[name]} == {}


def test_the_queries_use_labels_of_their_metrics() -> None:
    for query, shown in expressions():
        used = {*re.findall(r"\$labels\.(\w+)", shown), *re.findall(r"\{\{(\w+)\}\}", shown)}
        used |= {word for words in re.findall(r"by \(([^)]*)\)", query) for word in words.split(", ")}
        used |= {*re.findall(r"[{,](\w+)[=~!]", query)}
        known = {label for name in re.findall(r"\btcpwin_\w+", query) for label in LABELS.get(name, ())}
        assert used - known - {"instance", "job", "le"} == {"__name__"} & used, query


def test_panels_do_not_overlap_and_have_their_own_ids() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in panels)
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def options_of(words: list[str]) -> dict[str, Any]:
    """Parse a command line; an unknown command or option is an error."""
    assert Path(words[0]).name == "tcpwin"
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None, words
    return command.make_parser(click.Context(command)).parse_args(words[2:])[0]


@pytest.mark.parametrize("unit", ["tcpwin-watch.service", "tcpwin-serve.service"])
def test_units_start_commands_that_exist(unit: str) -> None:
    lines = [line.partition("=")[::2] for line in (FILES / unit).read_text(encoding="utf8").splitlines()]
    found = {key: value for key, value in lines if not key.startswith("#")}
    options = options_of(shlex.split(found["ExecStart"]))
    written = options["out"] if unit == "tcpwin-watch.service" else options["data"]
    assert written == f"/var/lib/{found['StateDirectory']}"
    assert found["DynamicUser"] == "yes"


def test_the_deployment_uses_what_the_container_has() -> None:
    container_file = (ROOT / "web" / "Containerfile").read_text(encoding="utf8")
    template = MANIFESTS["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    options_of(container["args"])
    assert {each["name"] for each in container["env"]} <= {f"TCPWIN_{name.upper()}" for name in Settings.model_fields}
    assert f"--uid {template['spec']['securityContext']['runAsUser']} " in container_file
    (port,) = container["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in container_file
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert re.findall(r"^VOLUME (\S+)", container_file, re.MULTILINE) == [each for each in mounts if each != "/tmp"]
    assert {*mounts.values()} == {each["name"] for each in template["spec"]["volumes"]}
    # The environment must not set an option by accident: Kubernetes adds TCPWIN_PORT for a service named tcpwin.
    assert template["spec"]["enableServiceLinks"] is False
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")]
    assert {probe["path"] for probe in probes} == {"/readyz", "/healthz"}
    # Probes and Prometheus call a pod by its address: the image listens on all, with a token, and accepts any name.
    assert Settings(host="0.0.0.0", token="long enough a secret").trusted_hosts == ["*"]


def test_the_manifests_belong_together() -> None:
    deployment, service = MANIFESTS["Deployment"]["spec"], MANIFESTS["Service"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert labels == deployment["selector"]["matchLabels"] == service["selector"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert {each["targetPort"] for each in service["ports"]} <= {each["name"] for each in container["ports"]}
    claims = {
        each["persistentVolumeClaim"]["claimName"]
        for each in deployment["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in each
    }
    assert claims == {MANIFESTS["PersistentVolumeClaim"]["metadata"]["name"]}
