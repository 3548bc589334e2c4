// A vendor with the authorization server that comes with the TypeScript SDK as an example:
// `node sdk_oauth_server.mjs PORT`. It signs everybody in at once, and its tokens end after an hour, without renewal.
import { once } from "node:events";
import { createServer } from "node:net";
import { setupAuthServer } from "@modelcontextprotocol/sdk/examples/server/demoInMemoryOAuthProvider.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import express from "express";
import { guardedMcp } from "./guarded_mcp.mjs";

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

const port = Number(process.argv[2]);
const origin = `http://127.0.0.1:${port}`;
const authServerUrl = new URL(`http://127.0.0.1:${await freePort()}/`);
const metadata = setupAuthServer({ authServerUrl, mcpServerUrl: new URL(`${origin}/mcp`), strictResource: true });

async function verifyAccessToken(token) {
  const body = new URLSearchParams({ token });
  const found = await (await fetch(metadata.introspection_endpoint, { method: "POST", body })).json();
  if (!found.active) throw new InvalidTokenError("unknown token");
  return { token, clientId: found.client_id, scopes: found.scope.split(" "), expiresAt: found.exp };
}

const app = express();
app.use(guardedMcp({ origin, issuer: metadata.issuer, scopes: ["mcp:tools"], verifyAccessToken }));
app.listen(port, "127.0.0.1");
