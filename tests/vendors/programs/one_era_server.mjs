// A vendor that speaks one revision of MCP only: `node one_era_server.mjs ERA PORT`, ERA is modern or legacy.
// Made with the TypeScript SDK of each era. /_stats says how often its tool ran.
import { createServer } from "node:http";
import { z } from "zod";

const [era, port] = process.argv.slice(2);
const ran = { echo: 0 };
const description = "Says the words again.";

function echo({ words }) {
  ran.echo++;
  return { content: [{ type: "text", text: words }] };
}

async function modern() {
  const sdk = new URL("../../clients/node_modules/@modelcontextprotocol/server/dist/index.mjs", import.meta.url);
  const { McpServer, createMcpHandler } = await import(sdk);
  const newServer = () => {
    const server = new McpServer({ name: "one-era", version: "1.0.0" });
    server.registerTool("echo", { description, inputSchema: z.object({ words: z.string() }) }, async (given) => echo(given));
    return server;
  };
  const handler = createMcpHandler(newServer, { legacy: "reject" });
  return async (request, response) => {
    const body = [];
    for await (const chunk of request) body.push(chunk);
    const { method, headers } = request;
    const content = method === "POST" ? Buffer.concat(body) : undefined;
    const answer = await handler.fetch(new Request(`http://127.0.0.1:${port}/mcp`, { method, headers, body: content }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  };
}

async function legacy() {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  return async (request, response) => {
    const server = new McpServer({ name: "one-era", version: "1.0.0" });
    server.registerTool("echo", { description, inputSchema: { words: z.string() } }, async (given) => echo(given));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await server.connect(transport);
    await transport.handleRequest(request, response);
  };
}

const serve = await { modern, legacy }[era]();
createServer((request, response) => {
  if (request.url === "/_stats") {
    response.end(JSON.stringify({ ran }));
  } else {
    serve(request, response).catch((fault) => {
      console.error(fault);
      response.destroy();
    });
  }
}).listen(Number(port), "127.0.0.1");
