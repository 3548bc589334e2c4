// A certified OpenID Connect provider with one client, whose people sign in with their address. It listens at the socket
// that it inherits as 3. Variables: ISSUER, CLIENT_ID, CLIENT_SECRET, ORIGIN (of the gateway).
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import http from 'node:http';
import Provider from 'oidc-provider';

const { ISSUER, CLIENT_ID, CLIENT_SECRET, ORIGIN } = process.env;
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });

const provider = new Provider(ISSUER, {
  clients: [{
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: [`${ORIGIN}/oidc/callback/`],
    post_logout_redirect_uris: [`${ORIGIN}/`],
    backchannel_logout_uri: `${ORIGIN}/oidc/backchannel-logout/`,
    backchannel_logout_session_required: true,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_post',
  }],
  jwks: { keys: [{ ...key, use: 'sig', alg: 'RS256', kid: 'one' }] },
  cookies: { keys: [randomBytes(32).toString('hex')] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  scopes: ['openid', 'email', 'profile', 'offline_access'],
  features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: id, email_verified: true, name: id.split('@')[0] }),
  }),
});
provider.proxy = true; // behind the proxy that ends TLS
http.createServer(provider.callback()).listen({ fd: 3 });
