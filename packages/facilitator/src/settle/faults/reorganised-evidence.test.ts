import { systemClock } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { describe, expect, it, vi } from "vitest";
import {
  drain,
  reserve,
  settle,
  signAsStranger,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";

const begin = useSettlingDevnet();

/** Blocks that a reorganisation replaces: the verification's own, and the one below. */
const depth = 2;
const network = { finalAfter: 10 };

/** Replaces the newest blocks. The first new one executes the authorization. */
async function replaceBlocks({ devnet }: SettlingDevnet, rawTransaction: Hex): Promise<void> {
  await devnet.reorg({ depth, transactions: [{ rawTransaction, blockIndex: 0 }] });
}

describe("an execution by another sender in a block that replaces the verification's", () => {
  it.each([
    ["a new trial", 2_000],
    ["its own transaction's logs", 0],
  ])("is honoured where %s shows it", async (_, passedMs) => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    let now = 0;
    const facilitator = await start({ network, clock: { ...systemClock, now: () => now } });
    await devnet.mine(5);
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    await replaceBlocks(here, await signAsStranger(here, paid));
    now += passedMs;
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("is honoured where the payment had failed", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, seller } = devnet.accounts;
    const facilitator = await start({ network });
    await devnet.mine(5);
    const paid = await pay();
    const execution = await signAsStranger(here, paid);
    const reservation = await reserve(facilitator, paid);
    await drain(here);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    await facilitator.close();
    // The blocks in which the buyer had emptied its account are replaced too.
    await devnet.reorg({ depth: 4, transactions: [{ rawTransaction: execution, blockIndex: 0 }] });
    await devnet.mint({ to: buyer.address, amount: 1n });
    expect(await balanceOf(seller.address)).toBe(1_000n);
    const restarted = await start({ network });
    await devnet.mine(1);
    await vi.waitFor(async () => {
      const { payments } = await restarted.payments.list({});
      expect(payments).toMatchObject([{ state: "confirmed" }]);
    }, 20_000);
  });

  it("is honoured after a restart, where the reorganisation moved it", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const facilitator = await start({ network });
    await devnet.mine(5);
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const execution = await signAsStranger(here, paid);
    const transaction = await submitAsStranger(here, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({
      success: true,
      transaction,
    });
    await facilitator.close();
    await devnet.reorg({ depth: 3, transactions: [{ rawTransaction: execution, blockIndex: 0 }] });
    const restarted = await start({ network });
    await devnet.mine(1);
    await vi.waitFor(async () => {
      const { payments } = await restarted.payments.list({});
      expect(payments).toMatchObject([
        {
          state: "confirmed",
          inclusion: { transactionHash: expect.not.stringMatching(transaction) },
        },
      ]);
    }, 20_000);
  });
});
