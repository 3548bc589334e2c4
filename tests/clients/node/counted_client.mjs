// The TypeScript client 2.x in one protocol version, with a bearer and a list of what it sent:
// node counted_client.mjs MCP_URL VERSION
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { report } from "./person.mjs";

const [url, version] = process.argv.slice(2);
const sent = [];
const counted = async (address, init) => {
  const answer = await fetch(address, init);
  const { method, params } = init?.body ? JSON.parse(init.body) : { method: init?.method ?? "GET" };
  sent.push([method, answer.status, params?.name ?? null]);
  return answer;
};
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: counted,
  requestInit: { headers: { Authorization: `Bearer ${process.env.MCP_BEARER}` } },
});
const isModern = version === "2026-07-28";
const client = new Client(
  { name: "gateway-tests", version: "1" },
  { versionNegotiation: { mode: isModern ? { pin: version } : "legacy" } },
);
await client.connect(transport);
const reports = [];
const { tools } = await client.listTools();
const called = await client.callTool({ name: "acme_whoami", arguments: {} });
const failed = await client.callTool({ name: "acme_fail", arguments: { reason: "späte Mühe" } });
const slow = await client.callTool(
  { name: "acme_run_report", arguments: { kind: "inventory", seconds: 0.2 } },
  { onprogress: (progress) => reports.push(progress.progress) },
);
let unknown = null;
try {
  await client.callTool({ name: "acme_no_such_tool", arguments: {} });
} catch (error) {
  unknown = error.code;
}
report({
  sent,
  tools: tools.map((tool) => tool.name),
  called: called.structuredContent,
  failed: [failed.isError, failed.content[0].text],
  slow: slow.structuredContent.kind,
  reports: reports.length,
  unknown,
  server: client.getServerVersion()?.name ?? null,
  instructions: client.getInstructions() ?? null,
});
await client.close();
