import { type Devnet, startDevnet } from "@coinslot/devnet";
import fc from "fast-check";
import type { Hash } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BlockEvent, createBlockWatcher, createRpcPool } from "../index.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mine(20);
});
afterAll(() => devnet.stop());

/** The chain as a subscriber reconstructs it from the events alone. */
function follow(chain: Hash[], event: BlockEvent): Hash[] {
  switch (event.type) {
    case "advanced":
      return [...chain, ...event.entered.map((block) => block.hash)];
    case "reorganised": {
      const left = event.left.map((block) => block.hash);
      expect(chain.slice(-left.length)).toEqual(left);
      return [...chain.slice(0, -left.length), ...event.entered.map((block) => block.hash)];
    }
    case "reset":
    case "unreachable":
    case "reachable":
      return expect.unreachable(`${event.type} was not to be expected`);
  }
}

const step = fc.oneof(
  fc.record({ mine: fc.integer({ min: 1, max: 5 }), poll: fc.boolean() }),
  fc.record({ reorg: fc.integer({ min: 1, max: 8 }), poll: fc.boolean() }),
);

describe("the events of a block watcher", () => {
  it("lead to the canonical chain through any blocks and reorganisations, seen or unseen", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const pool = createRpcPool({ chainId: devnet.chainId, rpcUrls: [devnet.rpcUrl] });
        const watcher = createBlockWatcher({ pool, pollIntervalMs: 60_000, windowSize: 512 });
        let chain: Hash[] = [];
        watcher.subscribe((event) => {
          chain = follow(chain, event);
        });
        const begin = (await watcher.refresh()).number;
        // Reorganisations below the first block seen end in a reset, which is tested elsewhere.
        await devnet.mine(8);
        await watcher.refresh();

        let height = 8;
        for (const { poll, ...change } of steps) {
          if ("mine" in change) {
            await devnet.mine(change.mine);
            height += change.mine;
          } else await devnet.reorg({ depth: Math.min(change.reorg, height) });
          if (poll) await watcher.refresh();
        }
        const head = await watcher.refresh();

        const numbers = Array.from(
          { length: Number(head.number - begin) + 1 },
          (_, index) => begin + BigInt(index),
        );
        const blocks = await Promise.all(
          numbers.map((blockNumber) => devnet.client.getBlock({ blockNumber })),
        );
        expect(chain).toEqual(blocks.map((block) => block.hash));
        watcher.close();
        pool.close();
      }),
      { numRuns: 10 },
    );
  });
});
