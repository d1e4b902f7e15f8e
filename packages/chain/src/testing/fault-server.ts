import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import * as z from "zod";

const callSchema = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) });
export type ReceivedCall = z.infer<typeof callSchema>;

/** One HTTP request that a fault may answer as it likes. */
export interface Exchange {
  calls: readonly ReceivedCall[];
  isBatch: boolean;
  headers: IncomingMessage["headers"];
  response: ServerResponse;
  /** Passes the request on, and resolves to the true answer. */
  forward(): Promise<unknown>;
  reply(json: unknown, status?: number, headers?: Record<string, string>): void;
}

export type Fault = (exchange: Exchange) => void | Promise<void>;

/** The answer of a healthy server. */
export const honest: Fault = async (exchange) => exchange.reply(await exchange.forward());

export interface FaultServer {
  /** Holds a secret in its path and its query. */
  url: string;
  /** The faults of the next requests. */
  set(fault: Fault): void;
  /** Every HTTP request so far, as the methods of its calls. */
  requests: readonly (readonly string[])[];
  close(): Promise<void>;
}

/** A secret that must never be seen outside of the pool. */
export const secret = "s3cr3t-key-0123456789";

/** A real HTTP server between a pool and a real node, which misbehaves on command. */
export async function startFaultServer(upstream: string): Promise<FaultServer> {
  let fault = honest;
  const requests: string[][] = [];
  const server = createServer(async (request, response) => {
    try {
      const body = await text(request);
      const json: unknown = JSON.parse(body);
      const calls = z.array(callSchema).parse(Array.isArray(json) ? json : [json]);
      requests.push(calls.map((call) => call.method));
      await fault({
        calls,
        isBatch: Array.isArray(json),
        headers: request.headers,
        response,
        async forward() {
          const headers = { "content-type": "application/json" };
          const answer = await fetch(upstream, { method: "POST", headers, body });
          return answer.json();
        },
        reply(answer, status = 200, headers = {}) {
          response.writeHead(status, { "content-type": "application/json", ...headers });
          response.end(JSON.stringify(answer));
        },
      });
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = z
    .object({ port: z.number() })
    .parse(server.address() satisfies AddressInfo | string | null);
  return {
    url: `http://127.0.0.1:${port}/v2/${secret}?token=${secret}`,
    set(next) {
      fault = next;
    },
    requests,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
