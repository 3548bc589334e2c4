// The TypeScript SDK 1.x signs in, lists the tools and calls one: node sdk_client.mjs MCP_URL
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { MemoryProvider, report } from "./person.mjs";

const url = new URL(process.argv[2]);
const provider = new MemoryProvider();
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
  const client = new Client({ name: "gateway-tests", version: "1" });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    return { transport };
  }
  return { client };
};

const refused = await connect();
if (refused.client) throw new Error("connected without signing in");
await refused.transport.finishAuth(provider.answer().get("code"));
const { client } = await connect();
if (!client) throw new Error("a fresh token was refused");

const { tools } = await client.listTools();
const called = await client.callTool({ name: "acme_whoami", arguments: {} });
report({ tools: tools.map((tool) => tool.name), called: called.structuredContent, scope: provider.tokens().scope });
await client.close();
