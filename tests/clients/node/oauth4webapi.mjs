// Drives every OAuth endpoint of a running gateway with oauth4webapi: node oauth4webapi.mjs MCP_URL
// SERVICE_CLIENT_ID, SERVICE_CLIENT_SECRET and SERVICE_SUBJECT are of a service client whose approver is BROWSER_EMAIL.
// The last line of the output is {step: "ok" or what went wrong} with every step in it.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

import * as oauth from "oauth4webapi";

import { person, report } from "./person.mjs";

const INSECURE = { [oauth.allowInsecureRequests]: true };
const REDIRECT_URI = "http://127.0.0.1:43119/callback";
const POLL_MARGIN_MS = 250;
const endpoint = process.argv[2];
const resource = new URL(endpoint);
const service = { client_id: process.env.SERVICE_CLIENT_ID };
const secret = process.env.SERVICE_CLIENT_SECRET;
const basic = oauth.ClientSecretBasic(secret);
const post = oauth.ClientSecretPost(secret);
const none = oauth.None();

let as, client, tokens, serviceToken, device, deviceTokens;

const withResource = { ...INSECURE, additionalParameters: { resource: endpoint } };
const exchange = async (answer, verifier, options = withResource) => {
  const response = await oauth.authorizationCodeGrantRequest(as, client, none, answer, REDIRECT_URI, verifier, options);
  return [response, oauth.processAuthorizationCodeResponse(as, client, response)];
};
const refresh = async (token, of = client, authentication = none) => {
  const response = await oauth.refreshTokenGrantRequest(as, of, authentication, token, INSECURE);
  return oauth.processRefreshTokenResponse(as, of, response);
};
const poll = async (deviceCode, of = service, authentication = basic) => {
  const response = await oauth.deviceCodeGrantRequest(as, of, authentication, deviceCode, INSECURE);
  return oauth.processDeviceCodeResponse(as, of, response);
};
const startDevice = async (of = service, authentication = basic) => {
  const wanted = { scope: "mcp:all" };
  const response = await oauth.deviceAuthorizationRequest(as, of, authentication, wanted, INSECURE);
  return oauth.processDeviceAuthorizationResponse(as, of, response);
};
const revoke = async (token, of, authentication, hint) => {
  const more = hint ? { ...INSECURE, additionalParameters: { token_type_hint: hint } } : INSECURE;
  const response = await oauth.revocationRequest(as, of, authentication, token, more);
  const copy = response.clone();
  await oauth.processRevocationResponse(response);
  assert.equal(await copy.text(), "", "an answer to a revocation is empty");
  assert.equal(copy.headers.get("cache-control"), "no-store");
};

// One JSON-RPC request with a token, as a client without an SDK sends it.
async function rpc(token, method, params = {}) {
  const headers = new Headers({ accept: "application/json, text/event-stream", "content-type": "application/json" });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await oauth.protectedResourceRequest(token, "POST", resource, headers, body, INSECURE);
  return (await response.json()).result;
}
async function works(token) {
  const { structuredContent } = await rpc(token, "tools/call", { name: "acme_whoami", arguments: {} });
  assert.equal(structuredContent.vendor, "Acme RMM");
}
async function isRefused(token) {
  const challenge = await rejection(rpc(token, "tools/list"), oauth.WWWAuthenticateChallengeError);
  assert.equal(challenge.status, 401);
  assert.equal(challenge.cause[0].parameters.error, "invalid_token");
  return challenge.cause[0].parameters;
}

async function rejection(promise, kind) {
  const failed = await promise.then(
    () => assert.fail("it was not refused"),
    (error) => error,
  );
  if (!(failed instanceof kind)) throw failed;
  return failed;
}
// An OAuth error: status and code. Basic authentication that failed comes with a challenge, which the library reports.
async function isError(promise, status, error) {
  const failed = await promise.then(
    () => assert.fail(`it was not refused with ${error}`),
    (reason) => reason,
  );
  if (failed instanceof oauth.WWWAuthenticateChallengeError) {
    assert.equal(failed.cause[0].scheme, "basic");
    assert.deepEqual([failed.status, (await failed.response.json()).error], [status, error]);
    return;
  }
  if (!(failed instanceof oauth.ResponseBodyError)) throw failed;
  assert.deepEqual([failed.status, failed.error], [status, error]);
  assert.equal(failed.response.headers.get("cache-control"), "no-store");
}

async function claimsOf(token) {
  const request = new Request(endpoint, { headers: { authorization: `Bearer ${token}` } });
  return oauth.validateJwtAccessToken(as, request, endpoint, INSECURE);
}

// A whole sign-in: what came back, checked, and the verifier that belongs to it.
async function signIn(action = "allow", changes = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: REDIRECT_URI,
    scope: "mcp:all",
    resource: endpoint,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...changes,
  });
  const answer = oauth.validateAuthResponse(as, client, new URL(await person(action, url)), state);
  return { answer, verifier };
}

const steps = {
  "challenge without a token": async () => {
    const response = await fetch(endpoint, { method: "POST", body: "{}" });
    assert.equal(response.status, 401);
    const header = response.headers.get("www-authenticate");
    assert.match(header, /^Bearer /);
    assert.ok(header.includes(`resource_metadata="${resource.origin}/.well-known/oauth-protected-resource/v1/mcp"`));
    assert.ok(!header.includes("error="), "without a token there is no error to name");
  },
  "challenge to a wrong token": async () => {
    const parameters = await isRefused("not-a-token");
    assert.equal(parameters.resource_metadata, `${resource.origin}/.well-known/oauth-protected-resource/v1/mcp`);
    assert.equal(parameters.scope, "mcp:all");
  },
  "discovery of the resource and its server": async () => {
    const response = await oauth.resourceDiscoveryRequest(resource, INSECURE);
    const metadata = await oauth.processResourceDiscoveryResponse(resource, response);
    assert.equal(metadata.resource, endpoint);
    assert.deepEqual(metadata.authorization_servers, [resource.origin]);
    const issuer = new URL(metadata.authorization_servers[0]);
    const found = await oauth.discoveryRequest(issuer, { ...INSECURE, algorithm: "oauth2" });
    as = await oauth.processDiscoveryResponse(issuer, found);
    assert.equal(as.issuer, metadata.authorization_servers[0]);
    assert.deepEqual(as.code_challenge_methods_supported, ["S256"]);
    assert.deepEqual(as.response_types_supported, ["code"]);
    assert.equal(as.authorization_response_iss_parameter_supported, true);
    for (const method of ["none", "client_secret_basic", "client_secret_post"]) {
      assert.ok(as.token_endpoint_auth_methods_supported.includes(method), method);
    }
  },
  // Its second poll comes five seconds later: the steps until then do not wait for that.
  "device flow, pending and approved": async () => {
    device = await startDevice();
    assert.match(device.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    assert.equal(device.verification_uri, `${resource.origin}/device`);
    assert.equal(device.interval, 5);
    await isError(poll(device.device_code), 400, "authorization_pending");
    device.mayBePolledAt = performance.now() + device.interval * 1000 + POLL_MARGIN_MS;
    assert.equal(await person("approve", device.verification_uri_complete), "200");
  },
  "dynamic registration": async () => {
    const metadata = { client_name: "oauth4webapi", redirect_uris: [REDIRECT_URI] };
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, INSECURE);
    assert.equal(response.headers.get("cache-control"), "no-store");
    client = await oauth.processDynamicClientRegistrationResponse(response);
    assert.equal(client.token_endpoint_auth_method, "none");
    assert.deepEqual(client.grant_types, ["authorization_code", "refresh_token"]);
    assert.deepEqual(client.redirect_uris, [REDIRECT_URI]);
    assert.ok(!("client_secret" in client));
  },
  "a redirect address that nobody may register": async () => {
    const metadata = { client_name: "oauth4webapi", redirect_uris: ["http://evil.example/cb"] };
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, INSECURE);
    await isError(oauth.processDynamicClientRegistrationResponse(response), 400, "invalid_redirect_uri");
  },
  "authorization code with PKCE and iss": async () => {
    const { answer, verifier } = await signIn();
    const [response, processed] = await exchange(answer, verifier);
    tokens = await processed;
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(tokens.token_type, "bearer");
    assert.equal(tokens.expires_in, 3600);
    assert.equal(tokens.scope, "mcp:all");
    assert.ok(tokens.refresh_token);
    await works(tokens.access_token);
  },
  "the access token is a JWT of RFC 9068": async () => {
    const claims = await claimsOf(tokens.access_token);
    assert.equal(claims.client_id, client.client_id);
    assert.equal(claims.scope, "mcp:all");
    assert.ok(claims.org_id);
    assert.ok(!claims.sub.startsWith("svc:"), "a person's token speaks for the person");
  },
  "refresh with rotation": async () => {
    const before = tokens;
    tokens = await refresh(before.refresh_token);
    assert.notEqual(tokens.refresh_token, before.refresh_token);
    assert.notEqual(tokens.access_token, before.access_token);
    await claimsOf(tokens.access_token);
    await works(tokens.access_token);
  },
  "two refreshes of one token at once": async () => {
    const both = await Promise.all([refresh(tokens.refresh_token), refresh(tokens.refresh_token)]);
    for (const each of both) await works(each.access_token);
    tokens = both[1];
    await works((await refresh(both[0].refresh_token)).access_token);
    tokens = await refresh(tokens.refresh_token);
    await works(tokens.access_token);
  },
  "a refresh token of another client": async () => {
    const metadata = { client_name: "somebody else", redirect_uris: [REDIRECT_URI] };
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, INSECURE);
    const other = await oauth.processDynamicClientRegistrationResponse(response);
    await isError(refresh(tokens.refresh_token, other), 400, "invalid_grant");
    await works(tokens.access_token);
  },
  "a wrong verifier": async () => {
    const { answer } = await signIn();
    const [, processed] = await exchange(answer, oauth.generateRandomCodeVerifier());
    await isError(processed, 400, "invalid_grant");
  },
  "a code that is used twice takes its tokens back": async () => {
    const again = await signIn();
    const [, processed] = await exchange(again.answer, again.verifier);
    const first = await processed;
    await works(first.access_token);
    const [, second] = await exchange(again.answer, again.verifier);
    await isError(second, 400, "invalid_grant");
    await isRefused(first.access_token);
    await isError(refresh(first.refresh_token), 400, "invalid_grant");
    await works(tokens.access_token);
  },
  "a person who cancels": async () => {
    const refused = await rejection(signIn("cancel"), oauth.AuthorizationResponseError);
    assert.equal(refused.error, "access_denied");
  },
  "errors of an authorization request come back with state and iss": async () => {
    const faults = {
      invalid_request: { code_challenge_method: "plain" },
      invalid_target: { resource: "https://elsewhere.example/mcp" },
      invalid_scope: { scope: "admin" },
      unsupported_response_type: { response_type: "token" },
    };
    const asked = Object.entries(faults).map(async ([error, changes]) => {
      const refused = await rejection(signIn("signed-in", changes), oauth.AuthorizationResponseError);
      assert.equal(refused.error, error);
    });
    await Promise.all(asked);
  },
  "client credentials by Basic": async () => {
    const wanted = { scope: "mcp:all", resource: endpoint };
    const response = await oauth.clientCredentialsGrantRequest(as, service, basic, wanted, INSECURE);
    serviceToken = await oauth.processClientCredentialsResponse(as, service, response);
    assert.ok(!("refresh_token" in serviceToken));
    const claims = await claimsOf(serviceToken.access_token);
    assert.equal(claims.sub, process.env.SERVICE_SUBJECT);
    await works(serviceToken.access_token);
  },
  "client credentials in the body": async () => {
    const response = await oauth.clientCredentialsGrantRequest(as, service, post, {}, INSECURE);
    const made = await oauth.processClientCredentialsResponse(as, service, response);
    await claimsOf(made.access_token);
    await works(made.access_token);
  },
  "client credentials that are not": async () => {
    const wrong = oauth.ClientSecretBasic("not-the-secret");
    const response = await oauth.clientCredentialsGrantRequest(as, service, wrong, {}, INSECURE);
    await isError(oauth.processClientCredentialsResponse(as, service, response), 401, "invalid_client");
    const open = await oauth.clientCredentialsGrantRequest(as, client, none, {}, INSECURE);
    await isError(oauth.processClientCredentialsResponse(as, client, open), 400, "unauthorized_client");
  },
  "device flow, tokens once": async () => {
    await pause(Math.max(0, device.mayBePolledAt - performance.now()));
    deviceTokens = await poll(device.device_code);
    const claims = await claimsOf(deviceTokens.access_token);
    assert.equal(claims.sub, process.env.SERVICE_SUBJECT);
    await works(deviceTokens.access_token);
    await isError(poll(device.device_code), 400, "invalid_grant");
  },
  "device flow, refreshed": async () => {
    deviceTokens = await refresh(deviceTokens.refresh_token, service, basic);
    await works(deviceTokens.access_token);
  },
  "device flow, denied": async () => {
    const denied = await startDevice(service, post);
    await person("deny", denied.verification_uri_complete);
    await isError(poll(denied.device_code, service, post), 400, "access_denied");
  },
  "device flow, too fast": async () => {
    const hasty = await startDevice();
    await isError(poll(hasty.device_code), 400, "authorization_pending");
    await isError(poll(hasty.device_code), 400, "slow_down");
  },
  "device flow, not for this client": async () => {
    await isError(startDevice(client, none), 400, "unauthorized_client");
    await isError(startDevice({ client_id: "nobody" }, basic), 401, "invalid_client");
    await isError(poll("not-a-device-code"), 400, "invalid_grant");
  },
  "revocation of an access token": async () => {
    await revoke(serviceToken.access_token, service, basic, "access_token");
    await isRefused(serviceToken.access_token);
    await revoke(serviceToken.access_token, service, basic);
    await revoke("never-was-a-token", client, none);
  },
  "revocation of a refresh token": async () => {
    await works(tokens.access_token);
    await revoke(tokens.refresh_token, client, none, "refresh_token");
    await isRefused(tokens.access_token);
    await isError(refresh(tokens.refresh_token), 400, "invalid_grant");
    await revoke(deviceTokens.refresh_token, service, post, "access_token");
    await isRefused(deviceTokens.access_token);
  },
};

const outcome = {};
for (const [name, step] of Object.entries(steps)) {
  const started = performance.now();
  try {
    await step();
    outcome[name] = "ok";
  } catch (error) {
    const cause = error.cause instanceof URLSearchParams ? `${error.cause}` : JSON.stringify(error.cause ?? {});
    outcome[name] = `${error.message} ${cause} ${error.stderr ?? ""}`.slice(0, 3000);
  }
  console.error(`${Math.round(performance.now() - started)} ms  ${name}`);
}
report(outcome);
