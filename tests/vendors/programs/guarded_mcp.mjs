// An MCP endpoint behind a bearer, for vendors of Node.js that people sign in to. Made with the TypeScript SDK.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import express from "express";

function newServer() {
  const server = new McpServer({ name: "guarded", version: "1.0.0" });
  server.registerTool("whoami", { description: "Whose token a call has." }, ({ authInfo }) => ({
    content: [{ type: "text", text: `${authInfo.extra?.account ?? "nobody"}: ${authInfo.scopes.join(" ")}` }],
  }));
  return server;
}

// `verifyAccessToken` is the SDK's: it throws InvalidTokenError. The metadata of the resource are for its path.
export function guardedMcp({ origin, issuer, scopes, verifyAccessToken }) {
  const router = express.Router();
  const metadata = "/.well-known/oauth-protected-resource/mcp";
  router.get(metadata, (_, response) => {
    response.json({ resource: `${origin}/mcp`, authorization_servers: [issuer], scopes_supported: scopes });
  });
  const guard = requireBearerAuth({ verifier: { verifyAccessToken }, resourceMetadataUrl: `${origin}${metadata}` });
  router.post("/mcp", guard, express.json(), async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await newServer().connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  router.all("/mcp", (_, response) => response.status(405).end());
  return router;
}
