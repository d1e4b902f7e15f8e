import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import * as z from "zod";

const callSchema = z.object({ id: z.number(), method: z.string(), params: z.array(z.unknown()) });
const answerSchema = z.looseObject({ id: z.number(), result: z.unknown() });

export type Call = z.infer<typeof callSchema>;
export type Answer = z.infer<typeof answerSchema> & { error?: unknown };

/** One HTTP request, and the possible reactions to it. */
export interface Exchange {
  calls: readonly Call[];
  /** The node's answers, in the order of the calls. */
  forward(): Promise<Answer[]>;
  reply(answers: readonly unknown[]): void;
  /** An answer outside JSON-RPC, or none. */
  response: ServerResponse;
}

export type Fault = (exchange: Exchange) => void | Promise<void>;

export const honest: Fault = async ({ forward, reply }) => reply(await forward());

/** A real HTTP server between an indexer and a node, which misbehaves on command. */
export interface FaultProxy {
  url: string;
  /** The faults of the next requests. */
  set(fault: Fault): void;
  /** The node behind it, from now on. */
  setUpstream(url: string): void;
  /** The calls of every request so far. */
  requests: readonly (readonly Call[])[];
  /** Refuses connections, until `mend`. */
  cut(): void;
  mend(): void;
}

/** Starts a proxy that ends with the test. */
export async function startFaultProxy(upstream: string): Promise<FaultProxy> {
  let fault = honest;
  let target = upstream;
  let isCut = false;
  const requests: Call[][] = [];
  const server = createServer(async (request, response) => {
    try {
      const body = await text(request);
      const json: unknown = JSON.parse(body);
      const isBatch = Array.isArray(json);
      const calls = z.array(callSchema).parse(isBatch ? json : [json]);
      requests.push(calls);
      await fault({
        calls,
        response,
        async forward() {
          const headers = { "content-type": "application/json" };
          const answer: unknown = await (
            await fetch(target, { method: "POST", headers, body })
          ).json();
          const answers = z.array(answerSchema).parse(isBatch ? answer : [answer]);
          return calls.flatMap(({ id }) => answers.find((each) => each.id === id) ?? []);
        },
        reply(answers) {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(JSON.stringify(isBatch ? answers : answers[0]));
        },
      });
    } catch {
      // The client has left, or the node is gone: a proxy breaks the connection.
      response.destroy();
    }
  });
  server.on("connection", (socket) => {
    if (isCut) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  );
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    set(next) {
      fault = next;
    },
    setUpstream(url) {
      target = url;
    },
    requests,
    cut() {
      isCut = true;
      server.closeAllConnections();
    },
    mend() {
      isCut = false;
    },
  };
}

/** Changes the answers of one method; the others are true. */
export function changing(method: string, change: (answer: Answer, call: Call) => unknown): Fault {
  return async ({ calls, forward, reply }) => {
    const answers = await forward();
    reply(
      answers.map((answer, index) => {
        const call = calls[index];
        return call?.method === method ? change(answer, call) : answer;
      }),
    );
  };
}

/** A JSON-RPC error in place of an answer. */
export function errorAnswer({ id }: { id: number }, code: number, message: string) {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

const rangeSchema = z.object({
  fromBlock: z.string().transform(Number),
  toBlock: z.string().transform(Number),
});

/** The range of a call of `eth_getLogs`; undefined where it names one block by hash. */
export function rangeOf(call: Call): { from: number; to: number } | undefined {
  const { data } = rangeSchema.safeParse(call.params[0]);
  return data && { from: data.fromBlock, to: data.toBlock };
}

/** The logs of an answer as plain objects. */
export function logsOf(answer: Answer): Record<string, unknown>[] {
  return z.array(z.record(z.string(), z.unknown())).catch([]).parse(answer.result);
}
