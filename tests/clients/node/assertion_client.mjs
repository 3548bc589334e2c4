// The TypeScript client 2.x with its provider for identity assertions: lists the tools and calls one.
// node assertion_client.mjs MCP_URL ISSUER TOKEN_URL, where TOKEN_URL exchanges ID_TOKEN for an assertion
import {
  Client,
  CrossAppAccessProvider,
  requestJwtAuthorizationGrant,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";

import { report } from "./person.mjs";

const [url, issuer, tokenEndpoint] = process.argv.slice(2);
const audiences = [];
const provider = new CrossAppAccessProvider({
  clientId: process.env.SERVICE_CLIENT_ID,
  clientSecret: process.env.SERVICE_CLIENT_SECRET,
  expectedIssuer: issuer,
  assertion: async ({ authorizationServerUrl, resourceUrl, scope }) => {
    audiences.push(String(authorizationServerUrl));
    const granted = await requestJwtAuthorizationGrant({
      tokenEndpoint,
      audience: authorizationServerUrl,
      resource: resourceUrl,
      idToken: process.env.ID_TOKEN,
      clientId: "client-at-the-provider",
      scope,
    });
    return granted.jwtAuthGrant;
  },
});
const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
const client = new Client({ name: "gateway-tests", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: "acme_whoami", arguments: {} });
report({ tools: tools.map((tool) => tool.name), called: called.structuredContent, audiences });
await client.close();
