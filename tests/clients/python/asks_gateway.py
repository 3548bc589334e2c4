"""A client program that lets the test drive the gateway: `asks_gateway.py TEST_URL SERVER_URL`.

For suites that start a client and watch what reaches their servers. Ends with 0 if the gateway got to a tool's result.
"""

import json
import os
import sys
import urllib.request

test_url, server_url = sys.argv[1:3]
scenario = {
    "name": os.environ["MCP_CONFORMANCE_SCENARIO"],
    "url": server_url,
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
}
request = urllib.request.Request(test_url, json.dumps(scenario).encode(), {"Content-Type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(request, timeout=110) as answer:
    said = json.load(answer)
print(said["trail"])  # noqa: T201 - for the report of a failure
sys.exit(0 if said["has_result"] else 1)
