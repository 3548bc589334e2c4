// The person in front of a client program: an address is opened by tests/clients/browser.py, as BROWSER_EMAIL.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

// Does ACTION (allow, cancel, approve, deny) at an address and returns what the browser printed.
export async function person(action, url) {
  const command = ["-m", "tests.clients.browser", action, String(url)];
  const { stdout } = await run(process.env.BROWSER_PYTHON, command, { timeout: 30_000 });
  return stdout.trim();
}

// Keeps everything of one sign-in in memory; `redirectToAuthorization` is where the person comes in.
export class MemoryProvider {
  redirectUrl = "http://127.0.0.1:43117/callback";
  clientMetadata = {
    client_name: "TypeScript client",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  #kept = {};

  state() {
    return (this.#kept.state = crypto.randomUUID());
  }
  clientInformation() {
    return this.#kept.client;
  }
  saveClientInformation(client) {
    this.#kept.client = client;
  }
  tokens() {
    return this.#kept.tokens;
  }
  saveTokens(tokens) {
    this.#kept.tokens = tokens;
  }
  codeVerifier() {
    return this.#kept.verifier;
  }
  saveCodeVerifier(verifier) {
    this.#kept.verifier = verifier;
  }
  saveDiscoveryState(found) {
    this.#kept.discovery = found;
  }
  discoveryState() {
    return this.#kept.discovery;
  }
  async redirectToAuthorization(url) {
    this.#kept.answer = new URL(await person("allow", url)).searchParams;
  }
  // What came back from the authorization server, after its state was compared.
  answer() {
    const answer = this.#kept.answer;
    if (answer?.get("state") !== this.#kept.state) {
      throw new Error("the state of the answer is not the one that was sent");
    }
    return answer;
  }
}

// The last line of a program: what it saw.
export function report(seen) {
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}
