// The TypeScript client 2.x asks for the newest protocol, signs in, lists the tools and calls one:
// node second_client.mjs MCP_URL
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

import { MemoryProvider, report } from "./person.mjs";

const url = new URL(process.argv[2]);
const provider = new MemoryProvider();
const connect = async () => {
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
  const client = new Client({ name: "gateway-tests", version: "1" }, { versionNegotiation: { mode: "auto" } });
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
await refused.transport.finishAuth(provider.answer());
const { client } = await connect();
if (!client) throw new Error("a fresh token was refused");

const { tools } = await client.listTools();
const called = await client.callTool({ name: "acme_whoami", arguments: {} });
report({ tools: tools.map((tool) => tool.name), called: called.structuredContent, scope: provider.tokens().scope });
await client.close();
