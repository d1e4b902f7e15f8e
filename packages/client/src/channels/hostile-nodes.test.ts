import { findKnownChain, plasma } from "@coinslot/protocol";
import { toHex } from "viem";
import { describe, expect, it } from "vitest";
import { startLyingNode } from "../testing/lying-node.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, sellerOf, createFetch, records } = useChannels();

/** A payer with a channel, whose withdrawals ask a node that lies about fees. */
async function withdrawBy(lie: Parameters<typeof startLyingNode>[1]) {
  const { accounts, client, rpcUrl } = world.devnet();
  const seller = await sellerOf();
  await createFetch()(seller.url);
  const [{ id = "0x" } = {}] = await records();
  const node = world.keep(await startLyingNode(rpcUrl, lie));
  const pay = createFetch({}, { account: accounts.buyer, rpcUrls: { [plasma]: [node.url] } });
  const before = await client.getBalance({ address: accounts.buyer.address });
  const ended = await pay.withdrawChannel(id).catch((error: unknown) => error);
  const after = await client.getBalance({ address: accounts.buyer.address });
  return { ended, paid: before - after };
}

const gwei = 10n ** 9n;

describe("a node that lies to a withdrawal", () => {
  it.each([
    ["tip", "eth_maxPriorityFeePerGas", () => toHex(10_000n * gwei)],
    [
      "base fee",
      "eth_getBlockByNumber",
      (block: unknown) => ({ ...Object(block), baseFeePerGas: toHex(10_000n * gwei) }),
    ],
  ])("about the %s gets no transaction above the chain's cap", async (_what, method, lie) => {
    const { ended, paid } = await withdrawBy((call, truth) =>
      call.method === method ? lie(truth) : undefined,
    );
    expect(ended).toMatchObject({
      code: "chain_unreadable",
      message: expect.stringContaining("0xcf5cf3dc"),
    });
    expect(paid).toBe(0n);
    expect(findKnownChain(plasma)?.maxFeePerGas).toBe(100n * gwei);
  });
});
