"""The hot paths. Both spellings of MCP's are served: a redirect would drop the body. Spec: D26"""

from django.urls import path

from gateway import liveness
from proxy.views import cli, mcp
from proxy.views.under_django import served_by_both

urlpatterns = [
    path("health", liveness.health, name="health"),
    path("ready", liveness.ready, name="ready"),
    path("v1/mcp", served_by_both(mcp.mcp), name="mcp"),
    path("v1/mcp/", served_by_both(mcp.mcp)),
    path("v1/<slug:vendor>/mcp", served_by_both(mcp.vendor_mcp), name="vendor-mcp"),
    path("v1/<slug:vendor>/mcp/", served_by_both(mcp.vendor_mcp)),
    path("v1/<slug:vendor>/cli", served_by_both(cli.cli), name="cli"),
    path("v1/<slug:vendor>/cli/schema", served_by_both(cli.schema), name="cli-schema"),
]
