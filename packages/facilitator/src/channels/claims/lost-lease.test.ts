import { systemClock } from "@coinslot/chain";
import { type ChannelConfig, channelContracts, toLowerHex } from "@coinslot/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openLedger } from "../../ledger/open-ledger.ts";
import {
  type ClaimingDevnet,
  patience,
  price,
  startClaimingDevnet,
} from "../../testing/claiming-devnet.ts";

let here: ClaimingDevnet;
let aheadMs: number;

beforeEach(async () => {
  aheadMs = 0;
  here = await startClaimingDevnet("postgres");
});

afterEach(() => here.stop());

/** Another process of the ledger claims of a new channel, of which this one sees nothing. */
async function claimElsewhere(config: ChannelConfig) {
  const { channels, devnet, ledger } = here;
  const { database, close } = await openLedger({ url: ledger.url, processId: "other" });
  const { kysely, dialect } = database;
  const key = {
    network: devnet.network,
    contract: toLowerHex(channelContracts.settlement),
    channel_id: channels.idOf(config),
  };
  await kysely
    .insertInto("channel_terms")
    .values({
      ...key,
      payer: config.payer,
      payer_authorizer: config.payerAuthorizer,
      receiver: config.receiver,
      receiver_authorizer: config.receiverAuthorizer,
      token: config.token,
      withdraw_delay: config.withdrawDelay,
      salt: config.salt,
      created_at: Date.now(),
    })
    .execute();
  const amount = dialect.amount.encode(price);
  await kysely
    .insertInto("channel_claims")
    .values({
      ...key,
      transaction_id: "other",
      total_claimed: amount,
      ceiling: amount,
      signature: "0x",
      state: "done",
      created_at: Date.now(),
    })
    .execute();
  await close();
  await channels.claim([await channels.rowOf(config, price)], devnet.accounts.deployer);
}

it("what another process has claimed meanwhile is settled, and its payout posted", async () => {
  const { channels } = here;
  const config = channels.configOf();
  await channels.deposit(config, 10_000n);
  const receiver = `0x${"5e".repeat(20)}` as const;
  const other = channels.configOf({ receiver });
  await channels.deposit(other, 10_000n);
  const facilitator = await here.start(
    {},
    {
      clock: { ...systemClock, now: () => performance.now() + aheadMs },
      // This process does not see that its lease was another's.
      times: { leaseMs: 3_600_000 },
    },
  );
  await here.buyOnce(facilitator, price, config);
  await channels.withdraw(config, 10_000n);
  await here.claimed(price, config);
  await claimElsewhere(other);
  const { url } = here.ledger;
  await vi.waitFor(async () => {
    aheadMs += 10_000;
    // A voucher keeps the chain followed with each block.
    await here.ask(facilitator, price, config);
    await here.devnet.mine(1);
    expect(await here.balanceOf(receiver)).toBe(price);
    const { database, close } = await openLedger({ url, processId: "reader", readOnly: true });
    const payouts = await database.kysely
      .selectFrom("channel_payouts")
      .select("receiver")
      .execute()
      .finally(close);
    expect(payouts).toContainEqual({ receiver });
  }, patience);
});
