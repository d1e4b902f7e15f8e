import { systemClock } from "@coinslot/chain";
import { sql } from "kysely";
import { generatePrivateKey } from "viem/accounts";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import { createVoucherBuyer, runOf, salesForEachTest } from "../../testing/sales-scene.ts";
import { engines } from "../../testing/settling-devnet.ts";

const refused = {
  state: "refused",
  reason: "invalid_batch_settlement_evm_cumulative_exceeds_balance",
};

describe.each(engines)("a signer that owes, on %s", (engine) => {
  const scene = salesForEachTest(engine);
  let one: ReturnType<typeof createVoucherBuyer>;
  let other: ReturnType<typeof createVoucherBuyer>;

  beforeEach(() => {
    const privateKey = generatePrivateKey();
    one = createVoucherBuyer({ privateKey });
    other = createVoucherBuyer({ privateKey, salt: 1 });
  });

  /** Opens the first channel, and has money lost on it. */
  async function lose(amount: bigint): Promise<void> {
    const lost = scene.first.dialect.amount.encode(amount);
    await scene.shared.read(
      sql`update channels set lost = ${lost} where channel_id = ${one.key.channelId}`,
    );
  }

  it("buys by none of its channels until it has paid, and others buy", async () => {
    const opening = scene.open(scene.first);
    await runOf(await opening.admit(await one.present(10n))).drop({ isFree: false });
    await lose(10n);
    const sales = scene.open(scene.first);
    expect(await sales.admit(await one.present(10n))).toEqual(refused);
    expect(await sales.admit(await other.present(10n))).toEqual(refused);
    await runOf(await sales.admit(await scene.buyer.present(10n))).drop({ isFree: false });
    await lose(0n);
    // It is not asked to wait for the set to be read again.
    await runOf(await sales.admit(await other.present(10n))).drop({ isFree: false });
  });

  it("is found while its process sells to it", async () => {
    const sales = scene.open(scene.first);
    const buy = async () => {
      const admission = await sales.admit(await other.present(10n));
      if (admission.state === "admitted") await admission.run.drop({ isFree: false });
      return admission.state;
    };
    await runOf(await sales.admit(await one.present(10n))).drop({ isFree: false });
    expect(await buy()).toBe("admitted");
    await lose(10n);
    await vi.waitFor(async () => expect(await buy()).toBe("refused"), {
      timeout: 60_000,
      interval: 50,
    });
  });

  it("owes nothing by a loss that was worth no claim", async () => {
    const opening = scene.open(scene.first);
    await runOf(await opening.admit(await one.present(10n))).drop({ isFree: false });
    await lose(9n);
    const sales = scene.open(scene.first, { minLoss: 10n });
    expect(await sales.admit(await one.present(10n))).toEqual(refused);
    await runOf(await sales.admit(await other.present(10n))).drop({ isFree: false });
  });

  it("is looked for by one statement for many requests of signers that owe nothing", async () => {
    const read: string[] = [];
    const db = scene.first.db.withPlugin({
      transformQuery({ node, queryId }) {
        read.push(scene.first.db.getExecutor().compileQuery(node, queryId).sql);
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const ledger: LedgerContext = { ...scene.first, db };
    const sales = scene.open(ledger, { clock: { ...systemClock, now: () => 0 } });
    for (let request = 1; request <= 5; request += 1) {
      await runOf(await sales.admit(await other.present(10n))).drop({ isFree: false });
    }
    expect(read.filter((text) => text.includes("lost") && text.includes(">"))).toHaveLength(1);
  });
});
