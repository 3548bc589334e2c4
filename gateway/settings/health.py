"""Vendor health: probe interval and the latency that counts as slow. Spec: §8 · D131"""

from gateway.settings import env

HEALTH_PROBE_INTERVAL_S = env.integer("HEALTH_PROBE_INTERVAL", 60, low=1, high=3600)
HEALTH_LATENCY_THRESHOLD_MS = env.integer("HEALTH_LATENCY_THRESHOLD_MS", 2_000, low=1, high=60_000)
HEALTH_PROBE_DEADLINE_S = 5.0
# Whether the status page names each vendor of the catalog. All are probed then: the page does not say which are in use.
STATUS_VENDORS = env.flag("STATUS_VENDORS", False)
