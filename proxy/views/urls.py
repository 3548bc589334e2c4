"""The hot paths. Both spellings of MCP's are served: a redirect would drop the body. Spec: D26"""

from django.urls import path

from gateway import liveness
from proxy.views import cli, mcp

urlpatterns = [
    path("health", liveness.health, name="health"),
    path("ready", liveness.ready, name="ready"),
    path("v1/mcp", mcp.mcp, name="mcp"),
    path("v1/mcp/", mcp.mcp),
    path("v1/<slug:vendor>/mcp", mcp.vendor_mcp, name="vendor-mcp"),
    path("v1/<slug:vendor>/mcp/", mcp.vendor_mcp),
    path("v1/<slug:vendor>/cli", cli.cli, name="cli"),
    path("v1/<slug:vendor>/cli/schema", cli.schema, name="cli-schema"),
]
