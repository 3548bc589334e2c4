"""Alerts, dashboard and runbook speak of figures that exist, and each alert has its page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.lib.metrics.figures import all_figures
from gateway.lib.metrics.names import CALLS
from gateway.metrics_server import deployment, identity_provider

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
UNIT_TESTS = RULES.with_name("alerts_test.yaml")
RUNBOOK = ROOT / "docs" / "operations" / "runbook"
GROUPS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
ALERTS: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "gateway.json").read_text())
NOT_OF_PROCESSES = {"gateway_build_info", *deployment.NAMES, identity_provider.NAME}
EXPRESSIONS = [alert["expr"] for alert in ALERTS]
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


def known_names() -> set[str]:
    """Series by name, as Prometheus stores them."""
    names = set(NOT_OF_PROCESSES)
    for figure in all_figures():
        if figure.kind == "histogram":
            names |= {f"{figure.name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            names.add(figure.name)
    return names


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *QUERIES])
def test_expressions_name_figures_that_exist(expression: str) -> None:
    named = set(re.findall(r"gateway_\w+", expression))
    assert named
    assert named <= known_names()


def test_every_figure_is_on_the_dashboard() -> None:
    shown = {name for query in QUERIES for name in re.findall(r"gateway_\w+", query)}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known_names()}
    assert {re.sub(r"_bucket$", "", name) for name in shown} == families


def test_there_are_twelve_alerts_and_each_has_a_page_of_its_own() -> None:
    names = [alert["alert"] for alert in ALERTS]
    assert len(set(names)) == len(names) == 12
    assert {path.stem for path in RUNBOOK.glob("*.md")} == set(names)
    for alert in ALERTS:
        assert alert["annotations"]["runbook"] == f"docs/operations/runbook/{alert['alert']}.md"
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert alert["annotations"]["summary"].endswith(".")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_a_page_says_what_it_means_how_to_look_and_what_to_do(alert: dict[str, Any]) -> None:
    page = (RUNBOOK / f"{alert['alert']}.md").read_text()
    assert page.startswith(f"# {alert['alert']}\n")
    assert re.findall(r"^## (.*)$", page, flags=re.M) == ["Meaning", "Look", "Do"]
    assert set(re.findall(r"`(gateway_\w+)", page)) <= known_names() | {figure.name for figure in all_figures()}


def test_figures_have_their_line_in_the_documentation() -> None:
    described = set(re.findall(r"^\| `(gateway_\w+)", (ROOT / "docs/operations/metrics.md").read_text(), flags=re.M))
    assert described == {figure.name for figure in all_figures()} | NOT_OF_PROCESSES


def test_pages_wait_for_a_minute_at_most_and_tickets_for_less_than_five() -> None:
    for alert in ALERTS:
        waits = {"page": {"0s", "30s", "1m"}, "ticket": {"0s", "30s", "1m", "4m"}}
        assert alert.get("for", "0s") in waits[alert["labels"]["severity"]]


def test_rules_are_evaluated_as_often_as_their_windows_need() -> None:
    """A window that is shorter than the pause between two evaluations would overlook what lies between."""
    assert [group["interval"] for group in GROUPS] == ["15s"]
    windows = [int(seconds) for rule in EXPRESSIONS for seconds in re.findall(r"\[(\d+)s\]", rule)]
    assert windows
    assert min(windows) >= 45


def test_labels_of_the_contract() -> None:
    assert CALLS.closed["outcome"] == ("success", "error", "denied", "rate_limited", "unavailable")
    assert CALLS.closed["route"] == ("mcp", "vendor_mcp", "cli")


def test_every_alert_has_unit_tests_of_both_ends() -> None:
    tested = [case for test in yaml.safe_load(UNIT_TESTS.read_text())["tests"] for case in test["promql_expr_test"]]
    silent = {re.findall(r"Gateway\w+", case["expr"])[0] for case in tested if not case["exp_samples"]}
    raised = {re.findall(r"Gateway\w+", case["expr"])[0] for case in tested if case["exp_samples"]}
    assert silent == raised == {alert["alert"] for alert in ALERTS}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(("what", "file"), [("check", RULES), ("test", UNIT_TESTS)])
def test_prometheus_reads_the_rules_and_agrees_with_their_tests(what: str, file: Path) -> None:
    done = subprocess.run(["promtool", what, "rules", file.name], cwd=file.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
