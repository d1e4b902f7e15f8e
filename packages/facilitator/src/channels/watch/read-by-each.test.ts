import { expect, it } from "vitest";
import { silentLogger } from "../../logger.ts";
import { account, word } from "../../testing/ledger-deposits.ts";
import { readByEach } from "./read-by-each.ts";
import { ChannelReadError } from "./read-channels.ts";

const head = { number: "0x10", hash: word(16), parentHash: word(15), timestamp: "0x1" };

/** An endpoint with heads, and without the state of contracts. */
function endpointOf(endpoint: number) {
  const request = async ({ method }: { method: string }) => {
    if (method !== "eth_call") return head;
    throw new ChannelReadError("missing trie node");
  };
  return { endpoint, chainId: 1, head: () => 16n, request, requestMany: async () => [] };
}

it("an endpoint without states has no say after ten minutes, about any number of channels", async () => {
  let now = 0;
  const ids = Array.from({ length: 10_001 }, (_, index) => word(index));
  const polled = {
    context: {
      clock: { now: () => now, setTimer: () => () => undefined },
      ledger: { now: () => now },
      logger: silentLogger,
    },
    settlement: {
      network: {
        network: "eip155:1" as const,
        multicall3: account(7),
        rpc: { endpoints: [endpointOf(1), endpointOf(2)] },
      },
    },
    place: { contract: account(8) },
  };
  const awaited = async () =>
    [...(await readByEach(polled, { ids })).values()].reduce((sum, each) => sum + each.awaited, 0);
  for (; now < 600_000; now += 150_000) expect(await awaited()).toBe(2 * ids.length);
  expect(await awaited()).toBe(0);
});
