import type { Address } from "@coinslot/protocol";
import { type Hex, numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { settle, useSettlingDevnet } from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";
import { createWallet, payBy } from "../../testing/wallets.ts";

const begin = useSettlingDevnet();

/**
 * Accepts any signature until the block in its first slot. After it, refuses and uses 80,000 gas,
 * as a token's ordinary refusal may.
 */
const cheapBurner: Hex = ("0x5f54431160155763" +
  "1626ba7e60e01b5f5260205ff35b62022ec05f205000") as Hex;

async function createCheapBurner(here: SettlingDevnet): Promise<Address> {
  const { client } = here.devnet;
  const wallet = await createWallet(here);
  await client.setCode({ address: wallet, bytecode: cheapBurner });
  await setLastHonestBlock(here, wallet, 2n ** 64n);
  return wallet;
}

function setLastHonestBlock({ devnet }: SettlingDevnet, wallet: Address, block: bigint) {
  return devnet.client.setStorageAt({
    address: wallet,
    index: 0,
    value: numberToHex(block, { size: 32 }),
  });
}

function sentBy({ devnet }: SettlingDevnet): Promise<number> {
  return devnet.client.getTransactionCount({ address: devnet.accounts.relayer.address });
}

/** A node that mines blocks while it accepts a transaction. */
function startSlowNode({ devnet }: SettlingDevnet) {
  return startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_sendRawTransaction") await devnet.mine(2);
    return ask();
  });
}

async function settleAfterTrial(
  here: SettlingDevnet,
  options: {
    facilitator: Awaited<ReturnType<SettlingDevnet["start"]>>;
    wallet: Address;
    paid: Awaited<ReturnType<typeof payBy>>;
  },
): Promise<string> {
  const { facilitator, wallet, paid } = options;
  const pending = (await here.devnet.client.getBlockNumber()) + 2n;
  await setLastHonestBlock(here, wallet, pending);
  const outcome = await settle(facilitator, paid).catch(String);
  return typeof outcome === "string" ? outcome : `${outcome.errorReason}`;
}

const waits = expect.stringMatching(/FacilitatorError: The gas for payments of payers with code/);
const failed = "invalid_exact_evm_transaction_failed";

describe("a wallet that burns only as much gas as an ordinary refusal", () => {
  it("waits with its failed payment until its gas is given back", async () => {
    const here = await begin();
    const proxy = await startSlowNode(here);
    try {
      const facilitator = await here.start({
        network: { rpcUrls: [proxy.url] },
        payersWithCode: { gasPerMinute: 700_000n },
      });
      const wallet = await createCheapBurner(here);
      const paid = await payBy(here, wallet);
      const outcomes: string[] = [];
      for (let count = 0; count < 4; count += 1) {
        outcomes.push(await settleAfterTrial(here, { facilitator, wallet, paid }));
      }
      expect(outcomes).toEqual([failed, waits, waits, waits]);
      expect(await sentBy(here)).toBe(1);
    } finally {
      await proxy.close();
    }
  });

  it("loses its record, and spends the shared budget from then on", async () => {
    const here = await begin();
    const proxy = await startSlowNode(here);
    try {
      const facilitator = await here.start({
        network: { rpcUrls: [proxy.url] },
        payersWithCode: { gasPerMinute: 700_000n },
      });
      const wallet = await createCheapBurner(here);
      for (let count = 0; count < 2; count += 1) {
        expect(await settle(facilitator, await payBy(here, wallet))).toMatchObject({
          success: true,
        });
      }
      const outcomes: string[] = [];
      for (let count = 0; count < 6; count += 1) {
        const paid = await payBy(here, wallet);
        outcomes.push(await settleAfterTrial(here, { facilitator, wallet, paid }));
      }
      // The record vouched for the first. Each burns 130,000 gas, and had 320,000 at risk.
      expect(outcomes).toEqual([failed, failed, failed, failed, failed, waits]);
    } finally {
      await proxy.close();
    }
  });
});
