"""The Helm chart: what it renders, what it refuses, and what every pod is held to."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.programs import CHART, ROOT, faults, has_programs, helm, refusal, rendered

pytestmark = pytest.mark.skipif(not has_programs(), reason="there is no build of Helm for this computer")

SMALL: dict[str, Any] = {
    "baseUrl": "https://gateway.example.com",
    "secrets": {"stores": "gateway-stores", "service": "gateway-service"},
}
FULL: dict[str, Any] = SMALL | {
    "image": {"repository": "registry.example/gateway", "digest": "sha256:" + "a" * 64},
    "env": {"AUDIT_RETENTION_DAYS": "30"},
    "catalog": '[[vendor]]\nslug = "acme"\n',
    "trustedProxies": ["10.1.0.0/16"],
    "web": {"autoscaling": {"enabled": True, "maxReplicas": 12}},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "tls", "nginxAffinity": True},
    "metrics": {"enabled": True, "serviceMonitor": {"enabled": True}},
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egressTo": [{"to": [{"ipBlock": {"cidr": "10.20.0.0/16"}}], "ports": [{"port": 5432}, {"port": 6379}]}],
    },
}
SERVING = {"web", "worker", "shipping"}
HELPERS = {"migrate", "catalog", "beat"}
# The oldest version that the chart allows, and the newest with a schema here that clusters run.
VERSIONS = ("1.27", "1.34")


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in objects if one["kind"] == kind]


def pods(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod's specification of each role."""
    found = {}
    for one in [*of_kind(objects, "Deployment"), *of_kind(objects, "Job")]:
        template = one["spec"]["template"]
        found[template["metadata"]["labels"]["app.kubernetes.io/component"]] = template["spec"]
    return found


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in pod["containers"][0]["env"]}


def test_no_journal_ends_with_its_pod() -> None:
    for role, pod in pods(rendered(SMALL)).items():
        assert variables(pod)["REVOCATION_JOURNAL"] == "off", role
    named = pods(rendered(SMALL | {"env": {"REVOCATION_JOURNAL": "/shared/ends.jsonl"}}))
    assert [variables(pod)["REVOCATION_JOURNAL"] for pod in named.values()] == ["/shared/ends.jsonl"] * len(named)


@pytest.mark.parametrize("values", [SMALL, FULL], ids=["small", "full"])
def test_helm_and_kubernetes_find_no_fault(values: dict[str, Any], tmp_path: Path) -> None:
    linted = helm("lint", "--strict", values=values)
    assert linted.returncode == 0, linted.stdout
    objects = rendered(values)
    for version in VERSIONS:
        assert faults(objects, version, tmp_path) == ""
    objects[0]["spec"] = {"nonesuch": 1}
    assert "nonesuch" in faults(objects, VERSIONS[-1], tmp_path)


@pytest.mark.parametrize("values", [SMALL, FULL], ids=["small", "full"])
def test_every_pod_is_bounded(values: dict[str, Any]) -> None:
    found = pods(rendered(values))
    assert set(found) == SERVING | HELPERS
    for role, pod in found.items():
        assert pod["automountServiceAccountToken"] is False, role
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001), role
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, role
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, role
            assert container["resources"]["limits"]["memory"], role
            assert container["resources"]["requests"]["cpu"], role


def test_helpers_get_no_secret_but_the_stores() -> None:
    found = pods(rendered(FULL))
    for role in HELPERS:
        assert "envFrom" not in found[role]["containers"][0], role
        given = variables(found[role])
        assert given["GATEWAY_ROLE"] == "helper", role
        secrets = {name for name, value in given.items() if isinstance(value, dict)}
        assert secrets == {"DATABASE_URL", "REDIS_URL", "QUEUE_REDIS_URL"}, role
    for role in SERVING:
        assert found[role]["containers"][0]["envFrom"] == [{"secretRef": {"name": "gateway-service"}}], role
        assert "GATEWAY_ROLE" not in variables(found[role]), role


def test_the_chart_makes_no_secret() -> None:
    assert of_kind(rendered(FULL), "Secret") == []


def test_each_variable_is_one_of_the_readme() -> None:
    documented = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", (ROOT / "README.md").read_text()))
    for role, pod in pods(rendered(FULL)).items():
        assert set(variables(pod)) - documented == set(), role


def test_the_schema_comes_before_the_pods_and_the_catalog_after_them() -> None:
    jobs = {one["spec"]["template"]["spec"]["containers"][0]["name"]: one for one in of_kind(rendered(FULL), "Job")}
    hooks = {name: job["metadata"]["annotations"]["helm.sh/hook"] for name, job in jobs.items()}
    assert hooks == {"migrate": "pre-install,pre-upgrade", "catalog": "post-install,post-upgrade"}
    # At the first install the release's own account is not there yet.
    assert jobs["migrate"]["spec"]["template"]["spec"]["serviceAccountName"] == "default"
    assert variables(jobs["catalog"]["spec"]["template"]["spec"])["VENDOR_CATALOG"] == "/catalog/catalog.toml"


def test_a_web_pod_is_asked_and_given_time() -> None:
    pod = pods(rendered(SMALL | {"web": {"drainDelaySeconds": 7, "drainSeconds": 100}}))["web"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    given = variables(pod)
    assert (given["DRAIN_DELAY_SECONDS"], given["DRAIN_SECONDS"], given["WEB_PROCESSES"]) == ("7", "100", "1")
    assert pod["terminationGracePeriodSeconds"] > 107


def test_limits_are_shared_among_as_many_processes_as_there_may_be() -> None:
    def processes(values: dict[str, Any]) -> str:
        return str(variables(pods(rendered(values))["web"])["DEPLOYMENT_PROCESSES"])

    assert processes(SMALL | {"web": {"replicas": 5}}) == "5"
    assert processes(FULL) == "12"


def test_pods_are_added_by_calls_and_by_load() -> None:
    assert of_kind(rendered(SMALL), "HorizontalPodAutoscaler") == []
    (scaler,) = of_kind(rendered(FULL), "HorizontalPodAutoscaler")
    assert [metric["type"] for metric in scaler["spec"]["metrics"]] == ["Pods", "Resource"]
    (web,) = (one for one in of_kind(rendered(FULL), "Deployment") if one["metadata"]["name"] == "gw-gateway-web")
    assert "replicas" not in web["spec"]  # the scaler's to set


def test_each_serving_pod_answers_prometheus_and_no_other() -> None:
    found = pods(rendered(FULL))
    assert {role for role, pod in found.items() if len(pod["containers"]) == 2} == SERVING
    for role in SERVING:
        serving, metrics = found[role]["containers"]
        assert (metrics["args"], metrics["ports"]) == (["metrics"], [{"name": "metrics", "containerPort": 9464}])
        # Both see one folder of figures, and only one of them sees the secrets.
        assert metrics["volumeMounts"] == serving["volumeMounts"]
        assert "envFrom" not in metrics
        assert variables(found[role])["METRICS_ADDRESS"] == "0.0.0.0:9464"
    assert all(len(pod["containers"]) == 1 for pod in pods(rendered(SMALL)).values())


def test_parts_that_are_off_are_not_there() -> None:
    objects = rendered(SMALL | {"networkPolicy": {"enabled": False}, "serviceAccount": {"create": False}})
    kinds = {one["kind"] for one in objects}
    assert kinds == {"Deployment", "Job", "Service", "PodDisruptionBudget"}
    assert {one["kind"] for one in rendered(FULL)} > {"Ingress", "NetworkPolicy", "ServiceMonitor", "ServiceAccount"}


def test_private_networks_are_shut_until_they_are_named() -> None:
    def private(values: dict[str, Any]) -> list[str]:
        (policy,) = (
            one for one in of_kind(rendered(values), "NetworkPolicy") if one["spec"]["policyTypes"] == ["Egress"]
        )
        blocks = [peer.get("ipBlock", {}) for rule in policy["spec"]["egress"] for peer in rule["to"]]
        assert "169.254.0.0/16" in blocks[1]["except"]  # where clouds answer with a machine's secrets
        return [block["cidr"] for block in blocks if block and block["cidr"] not in {"0.0.0.0/0", "::/0"}]

    assert private(SMALL) == []
    assert private(FULL) == ["10.20.0.0/16"]


def test_the_values_of_the_guide_are_taken(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "install.md").read_text()
    block = re.search(r"^ *# values.example.yaml\n(.*?)```", guide, re.MULTILINE | re.DOTALL)
    assert block is not None
    values = yaml.safe_load(textwrap.dedent(block[1]).replace("sha256:…", "sha256:" + "b" * 64))
    objects = rendered(values)
    assert faults(objects, VERSIONS[-1], tmp_path) == ""
    assert {one["kind"] for one in objects} > {"Ingress", "NetworkPolicy"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"baseUrl": ""}, "baseUrl"),
        ({"baseUrl": "http://gateway.example.com"}, "baseUrl"),
        ({"baseUrl": "https://gateway.example.com/path"}, "baseUrl"),
        ({"secrets": {"stores": "gateway-stores"}}, "service"),
        ({"env": {"SECRET_KEY": "not here"}}, "SECRET_KEY"),
        ({"env": {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=not here"}}, "OTEL_EXPORTER_OTLP_HEADERS"),
        ({"env": {"lower": "case"}}, "lower"),
        ({"worker": {"processes": 0}}, "worker"),
        ({"image": {"digest": "sha256:short"}}, "digest"),
        ({"metrics": {"port": 70000}}, "port"),
        ({"webb": {}}, "webb"),
    ],
)
def test_wrong_values_are_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    assert refusal(SMALL) == ""
    assert named in refusal(SMALL | wrong)


def test_each_value_has_a_rule() -> None:
    """The schema knows all values that values.yaml offers, and no others."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    offered = re.findall(r"^([a-zA-Z]+):", (CHART / "values.yaml").read_text(), re.MULTILINE)
    assert set(offered) == set(schema["properties"]) - {"global"}
