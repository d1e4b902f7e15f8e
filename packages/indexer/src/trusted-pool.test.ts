import { text } from "node:stream/consumers";
import { createRpcPool, systemClock } from "@coinslot/chain";
import { listen } from "@coinslot/devnet";
import { toHex } from "viem";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { createTrustedPool } from "./trusted-pool.ts";

const chainId = 9745;
const hash = toHex(1, { size: 32 });
const callSchema = z.object({ id: z.number(), method: z.string() });

/** An endpoint whose newest block is new by its time. `undefined`: it does not answer. */
async function startNode(head: () => number | undefined, now: () => number): Promise<string> {
  const answer = ({ id, method }: z.output<typeof callSchema>) => {
    const block = { number: toHex(head() ?? 0), hash, parentHash: hash };
    const result =
      method === "eth_chainId"
        ? toHex(chainId)
        : { ...block, timestamp: toHex(Math.floor(now() / 1000)) };
    return { jsonrpc: "2.0", id, result };
  };
  const server = await listen(async (request, response) => {
    const body: unknown = JSON.parse(await text(request));
    if (head() === undefined) return response.destroy();
    const answers = Array.isArray(body)
      ? body.map((call) => answer(callSchema.parse(call)))
      : answer(callSchema.parse(body));
    response.setHeader("content-type", "application/json").end(JSON.stringify(answers));
  });
  onTestFinished(server.close);
  return server.url;
}

it("the first of two endpoints is followed after an outage, whatever low head the second had", async () => {
  let passedMs = 0;
  const now = () => Date.now() + passedMs;
  const clock = { ...systemClock, now: () => systemClock.now() + passedMs };
  let first: number | undefined = 1_000;
  const rpcUrls = [await startNode(() => first, now), await startNode(() => 900, now)];
  const pool = createRpcPool({ chainId, rpcUrls, clock, timeoutMs: 2_000 });
  onTestFinished(() => pool.close());
  const trusted = createTrustedPool(pool, { chainId, outvoted: new Set(), clock });
  const [a, b] = trusted.endpoints;
  if (a === undefined || b === undefined) throw new Error("No endpoints");
  await trusted.checkHead(a, 1_000);
  first = undefined;
  passedMs += 600_000;
  await trusted.checkHead(b, 900);
  first = 1_600;
  passedMs += 60_000;
  // Both are there again.
  expect(await pool.compareHeads()).toHaveLength(2);
  await trusted.checkHead(b, 900);
  await expect(trusted.checkHead(a, first)).resolves.toBeUndefined();
});
