"""Metrics, traces and the line of each request. Contract: 7"""

from __future__ import annotations

from gateway.lib.addresses import split_address
from gateway.settings import env
from gateway.settings.base import VAR

# Empty: processes write no figures, and no program answers.
METRICS_ADDRESS = env.text("METRICS_ADDRESS")
if METRICS_ADDRESS and split_address(METRICS_ADDRESS) is None:
    env.refuse("METRICS_ADDRESS", f"must be an address and a port, such as 127.0.0.1:9464, not {METRICS_ADDRESS!r}.")
# Of all processes of the host.
METRICS_FOLDER = VAR / "metrics"
# Traces are exported where one of these is set; OpenTelemetry's library reads all its variables itself.
TRACES = bool(env.text("OTEL_EXPORTER_OTLP_ENDPOINT") or env.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
# One line in the log for each request under /v1.
LOG_REQUESTS = env.flag("LOG_REQUESTS", False)
