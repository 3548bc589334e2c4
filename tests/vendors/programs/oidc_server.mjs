// A vendor with oidc-provider as its authorization server: `node oidc_server.mjs PORT`.
// People sign in and agree on its pages. Its metadata are OpenID Connect's, below a path; clients register themselves, get
// a secret, and rotate refresh tokens; one that comes twice ends its grant. `/_stats` counts.
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import express from "express";
import Provider from "oidc-provider";
import { guardedMcp } from "./guarded_mcp.mjs";

const port = Number(process.argv[2]);
const origin = `http://127.0.0.1:${port}`;
const resource = `${origin}/mcp`;
const scopes = ["read", "write"];
const stats = { refreshed: 0, revoked: 0 };

const provider = new Provider(`${origin}/tenant`, {
  scopes: ["openid", "offline_access", "email"],
  claims: { openid: ["sub"], email: ["email"] },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@vendor.example` }) }),
  rotateRefreshToken: true,
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, asked) => {
        if (asked !== resource) throw new Error("another resource");
        return { scope: scopes.join(" "), audience: resource, accessTokenTTL: 3600, accessTokenFormat: "opaque" };
      },
    },
  },
  cookies: { keys: ["of tests"] },
  ttl: { Grant: 86400, Interaction: 600, Session: 600, RefreshToken: 86400, IdToken: 3600 },
});
provider.on("refresh_token.consumed", () => stats.refreshed++);
provider.on("grant.revoked", () => stats.revoked++);

async function verifyAccessToken(token) {
  const found = await provider.AccessToken.find(token);
  const audience = [found?.aud].flat();
  if (!found?.isValid || !audience.includes(resource)) throw new InvalidTokenError("unknown token");
  return {
    token,
    clientId: found.clientId,
    scopes: [...found.scopes],
    expiresAt: found.exp,
    extra: { account: found.accountId },
  };
}

const app = express();
app.get("/_stats", (_, response) => response.json(stats));
app.get("/favicon.ico", (_, response) => response.status(204).end());
app.use(guardedMcp({ origin, issuer: `${origin}/tenant`, scopes, verifyAccessToken }));
app.use("/tenant", provider.callback());
app.listen(port, "127.0.0.1");
