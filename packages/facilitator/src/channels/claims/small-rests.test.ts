import type { ChannelConfig } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";
import { enginesByDay } from "../../testing/settling-devnet.ts";

describe.each(enginesByDay("sqlite"))("unclaimed money of less than its gas, on %s", (engine) => {
  let here: ClaimingDevnet;
  let config: ChannelConfig;
  let aheadMs: number;

  beforeEach(async () => {
    here = await startClaimingDevnet(engine);
    config = here.channels.configOf();
    aheadMs = 0;
  });

  afterEach(() => here.stop());

  /** Number of channels that the planner and the audits read. */
  async function countDues() {
    const { database, close } = await openLedger({
      url: here.ledger.url,
      processId: "reader",
      readOnly: true,
    });
    const rows = await database.kysely.selectFrom("channel_dues").select("channel_id").execute();
    await close();
    return rows.length;
  }

  it("is read no more once its buyer has gone, and is claimed with what is charged later", async () => {
    const facilitator = await here.start(
      { claimCost: 5_000n, claimAfterSeconds: 60 },
      { now: () => Date.now() + aheadMs },
    );
    await here.channels.deposit(config, 20_000n);
    await here.devnet.mine(5);
    await here.buyOnce(facilitator, price, config);
    await here.devnet.mine(5);
    expect(await countDues()).toBe(1);
    aheadMs = 61_000;
    await vi.waitFor(async () => {
      await here.devnet.mine(1);
      expect(await countDues()).toBe(0);
    }, patience);
    for (let ceiling = 2n * price; ceiling <= 3n * price; ceiling += price) {
      expect(await here.buyOnce(facilitator, ceiling, config)).toBe(true);
    }
    aheadMs = 122_000;
    await here.claimed(3n * price, config);
    await here.drained(facilitator);
    expect(await here.lost(facilitator)).toBe(0);
  });
});
