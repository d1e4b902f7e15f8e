import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type Listening, listen } from "@coinslot/devnet";

/** Load of a node: the calls that a provider bills, and their HTTP requests. */
export interface Bill {
  requests: number;
  calls: number;
  byMethod: ReadonlyMap<string, number>;
}

/** A node whose bill is counted. */
export interface CountingNode extends Listening {
  /** Returns the bill since the last call, and begins another. */
  take(): Bill;
}

/**
 * A server in front of a node that counts its calls. Each answer takes `latencyMs` longer, as
 * from a provider far away. Callers gather meanwhile as they would there.
 */
export async function startCountingNode(upstream: string, latencyMs = 0): Promise<CountingNode> {
  let requests = 0;
  let byMethod = new Map<string, number>();
  const server = await listen(async (request, response) => {
    try {
      const body: unknown = await json(request);
      requests += 1;
      for (const { method } of (Array.isArray(body) ? body : [body]) as { method: string }[])
        byMethod.set(method, (byMethod.get(method) ?? 0) + 1);
      const [answer] = await Promise.all([
        fetch(upstream, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        }),
        sleep(latencyMs),
      ]);
      response.writeHead(answer.status, { "content-type": "application/json" });
      response.end(await answer.text());
    } catch {
      response.destroy();
    }
  });
  return {
    ...server,
    take() {
      const calls = [...byMethod.values()].reduce((sum, count) => sum + count, 0);
      const bill = { requests, calls, byMethod };
      requests = 0;
      byMethod = new Map();
      return bill;
    },
  };
}
