// A vendor that closes its event streams while its tool runs, as the protocol allows: `node polling_server.mjs PORT`.
// Made with the TypeScript SDK. Whoever comes back with the last event id is sent what it missed.
import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { setImmediate } from "node:timers";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const RETRY_MS = 100;

class EventStore {
  resumed = new EventEmitter().setMaxListeners(0);
  #events = [];

  async storeEvent(streamId, message) {
    return String(this.#events.push({ streamId, message }));
  }

  async replayEventsAfter(lastEventId, { send }) {
    const { streamId } = this.#events[Number(lastEventId) - 1];
    for (const [index, event] of this.#events.entries()) {
      if (index >= Number(lastEventId) && event.streamId === streamId && event.message.jsonrpc) {
        await send(String(index + 1), event.message);
      }
    }
    setImmediate(() => this.resumed.emit("stream")); // by then the transport knows the new stream
    return streamId;
  }
}

function newServer(store) {
  const server = new McpServer({ name: "polling", version: "1.0.0" });
  const work = async ({ steps, waits }, { closeSSEStream, sendNotification, _meta }) => {
    for (let step = 1; step <= steps; step++) {
      if (_meta?.progressToken !== undefined) {
        const params = { progressToken: _meta.progressToken, progress: step, total: steps };
        await sendNotification({ method: "notifications/progress", params });
      }
      const isBack = once(store.resumed, "stream");
      closeSSEStream();
      if (waits) await isBack;
    }
    return { content: [{ type: "text", text: `done in ${steps} steps` }] };
  };
  const description = "Reports each step and closes its stream; waits until it is resumed, or goes on meanwhile.";
  server.registerTool("work", { description, inputSchema: { steps: z.number(), waits: z.boolean() } }, work);
  return server;
}

const transports = new Map();

async function transportFor(request) {
  const known = transports.get(request.headers["mcp-session-id"]);
  if (known) return known;
  const eventStore = new EventStore();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore,
    retryInterval: RETRY_MS,
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  await newServer(eventStore).connect(transport);
  return transport;
}

const web = createServer(async (request, response) => (await transportFor(request)).handleRequest(request, response));
web.listen(Number(process.argv[2]), "127.0.0.1");
