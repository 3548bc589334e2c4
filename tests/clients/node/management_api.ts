// An organization's whole life through openapi-fetch and the generated types: node management_api.ts ORIGIN
// SESSION_NAME and SESSION_KEY are the cookie of a signed-in person, VENDOR_KEY a key of the vendor acme. The last line
// of the output is what the program has seen, as JSON.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";

import type { paths } from "gateway_api";

const origin = process.argv[2] ?? "";
const { SESSION_NAME, SESSION_KEY, VENDOR_KEY } = process.env;
const signedIn = createClient<paths>({ baseUrl: origin, headers: { Cookie: `${SESSION_NAME}=${SESSION_KEY}` } });
const seen: Record<string, unknown> = {};

/** The data of an answer, which is no error. */
function good<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  assert.ok(answer.response.ok, JSON.stringify(answer.error));
  return answer.data as T;
}

/** The status of an answer without a body. */
function done(answer: { response: Response }): void {
  assert.equal(answer.response.status, 204);
}

/** A call of the agent. */
async function call(key: string, name: string): Promise<{ status: number; body: any }> {
  const response = await fetch(`${origin}/v1/mcp`, {
    method: "POST",
    headers: {
      Accept: "application/json, text/event-stream",
      Authorization: `Bearer ${key}`,
      "Content-Type": "application/json",
      "MCP-Protocol-Version": "2025-11-25",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } }),
  });
  return { status: response.status, body: await response.json() };
}

const organization = good(await signedIn.POST("/api/orgs", { body: { name: "Script Traders" } }));
const org_id = organization.id;
const wanted = { org_id, name: "TypeScript", scope: "admin", expires_in_days: 1 };
const made = good(await signedIn.POST("/api/profile/tokens", { body: wanted }));
const client = createClient<paths>({ baseUrl: origin, headers: { Authorization: `Bearer ${made.token}` } });
seen["organizations"] = good(await client.GET("/api/orgs")).map((each) => each.name);
seen["not by token"] = (await client.POST("/api/orgs", { body: { name: "Another" } })).error?.error;

const vendor = good(await client.GET("/api/vendors", { params: { query: { name: "acme" } } }))[0]!.slug;
const of = { path: { org_id } };
const atVendor = { path: { org_id, vendor } };
const connect = { params: atVendor, body: { apiKey: VENDOR_KEY! } };
seen["validated"] = good(await client.POST("/api/orgs/{org_id}/credentials/{vendor}", connect)).validated;
seen["connected"] = good(await client.GET("/api/orgs/{org_id}/credentials", { params: of }));

const invitation = good(await client.POST("/api/orgs/{org_id}/invitations", { params: of, body: { maxUses: 1 } }));
const pending = good(await client.GET("/api/orgs/{org_id}/invitations", { params: of }));
seen["invited"] = pending.length === 1 && pending[0]!.id === invitation.id;
const ofInvitation = { path: { org_id, invitation_id: invitation.id } };
done(await client.DELETE("/api/orgs/{org_id}/invitations/{invitation_id}", { params: ofInvitation }));
const ids = new Set<string>();
for (let time = 0; time < 2; time++) {
  const header = { "Idempotency-Key": "night-shift" };
  const wantedTeam = { params: { ...of, header }, body: { name: "Night shift" } };
  ids.add(good(await client.POST("/api/orgs/{org_id}/teams", wantedTeam)).id);
}
const found = good(
  await client.GET("/api/orgs/{org_id}/teams", { params: { ...of, query: { name: "Night shift" } } }),
);
found.forEach((each) => ids.add(each.id));
seen["one team"] = ids.size === 1 && found.length === 1;
const team_id = found[0]!.id;
const access = { params: { path: { org_id, team_id, vendor } }, body: {} };
good(await client.PUT("/api/orgs/{org_id}/teams/{team_id}/server-access/{vendor}", access));
seen["members"] = good(await client.GET("/api/orgs/{org_id}/members", { params: of })).map((each) => each.role);

const bot = { params: of, body: { name: "Triage bot" } };
const client_id = good(await client.POST("/api/orgs/{org_id}/service-clients", bot)).client_id;
const named = { params: { ...of, query: { name: "Triage bot" } } };
seen["imported"] = good(await client.GET("/api/orgs/{org_id}/service-clients", named))[0]!.client_id === client_id;
const ofAgent = { path: { org_id, client_id } };
const mode = { params: ofAgent, body: { mode: "read_only" as const } };
good(await client.PUT("/api/orgs/{org_id}/service-clients/{client_id}/tool-access", mode));
const tools = { params: { path: { org_id, client_id, vendor } }, body: { tools: ["acme_whoami"] } };
good(await client.PUT("/api/orgs/{org_id}/service-clients/{client_id}/tool-access/{vendor}", tools));
const key = good(
  await client.POST("/api/orgs/{org_id}/service-clients/{client_id}/agent-key", { params: ofAgent, body: {} }),
).agent_key;
seen["call"] = JSON.stringify((await call(key, "acme_whoami")).body).includes("key_fingerprint");
seen["refused call"] = (await call(key, "acme_create_ticket")).body.result.isError;
seen["token at /v1"] = (await call(made.token, "acme_whoami")).status;
const ofLog = { params: { query: { org_id } } };
const calls = good(await client.GET("/api/audit", ofLog)) as { entries: { tool: string }[] };
seen["calls"] = [...new Set(calls.entries.map((each) => each.tool))].sort();
const changes = good(await client.GET("/api/audit/admin", ofLog)) as {
  entries: { eventType: string; actorLabel: string }[];
};
const teamMade = changes.entries.find((each) => each.eventType === "team.created");
seen["actor names the token"] = teamMade!.actorLabel.includes(`(token TypeScript, ${made.prefix})`);

done(await client.DELETE("/api/orgs/{org_id}/service-clients/{client_id}/agent-key", { params: ofAgent }));
seen["revoked key"] = (await call(key, "acme_whoami")).status;
done(await client.DELETE("/api/orgs/{org_id}/service-clients/{client_id}", { params: ofAgent }));
done(await client.DELETE("/api/orgs/{org_id}/teams/{team_id}", { params: { path: { org_id, team_id } } }));
done(await client.DELETE("/api/orgs/{org_id}/credentials/{vendor}", { params: atVendor }));
seen["left"] = [
  good(await client.GET("/api/orgs/{org_id}/credentials", { params: of })),
  good(await client.GET("/api/orgs/{org_id}/teams", { params: of })),
];
done(await signedIn.DELETE("/api/profile/tokens/{token_id}", { params: { path: { token_id: made.id } } }));
seen["revoked token"] = (await client.GET("/api/orgs/{org_id}", { params: of })).response.status;
done(await signedIn.DELETE("/api/orgs/{org_id}", { params: of }));
seen["gone"] = (await signedIn.GET("/api/orgs/{org_id}", { params: of })).response.status;
console.log(JSON.stringify(seen));
