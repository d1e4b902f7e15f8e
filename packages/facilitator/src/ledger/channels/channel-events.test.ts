import type { ChannelConfig, Hex } from "@coinslot/protocol";
import { registerEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { webhookEventTypes } from "../../configuration/webhook-options.ts";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { beginPayouts, postPayouts } from "./channel-payouts.ts";
import type { ChannelReading } from "./channel-state.ts";
import { chargeChannel } from "./charge-channel.ts";
import { mirrorChannel } from "./mirror-channel.ts";
import { openChannel } from "./open-channel.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const place = { network: "eip155:9745", contract: account(0x4020) } as const;
const key = { ...place, channelId: word(1) };
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: word(0),
};
const facts = {
  ...{ channel: key.channelId, network: place.network, contract: place.contract },
  ...{ asset: config.token, payer: config.payer, payTo: config.receiver },
};

/** A channel with 1,000 units at a block. */
const reading = (number: number, parts: Partial<ChannelReading> = {}): ChannelReading => ({
  balance: 1_000n,
  totalClaimed: 0n,
  withdrawal: undefined,
  refundNonce: 0n,
  block: { number, hash: word(number) },
  ...parts,
});
const withdrawal = { amount: 700n, initiatedAt: 1_795_000_000 };

describe.each(engines)("events of channels, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let ledger: LedgerContext;

  const mirror = (head: ChannelReading, final?: ChannelReading) =>
    mirrorChannel(ledger, { ...key, head, served: head, final, maxLead: 10 });

  async function charge(amount: bigint): Promise<void> {
    const isCharged = await chargeChannel(ledger, {
      ...{ ...key, id: "charge", seen: 0n, base: 0n, amount, ceiling: amount },
      ...{ signature: "0xab", fingerprint: "GET /weather", route: "GET /weather" },
    });
    expect(isCharged).toBe(true);
  }

  /** The events that were written, oldest first. */
  async function readEvents() {
    const rows = await shared.read(sql`select type, key, payload from outbox_events order by seq`);
    return (rows as { type: string; key: string; payload: string }[]).map((row) => ({
      ...row,
      payload: JSON.parse(row.payload),
    }));
  }

  beforeEach(async () => {
    ledger = await shared.join("first");
    const types = [...webhookEventTypes];
    await registerEndpoints(ledger, [
      { id: "whk_1", url: "https://a.example/", secrets: [], types },
    ]);
    await openChannel(ledger, { ...key, config, totalClaimed: 0n });
    await mirror(reading(10), reading(5));
    await charge(900n);
  });

  it("are not written for a charge", async () => {
    expect(await readEvents()).toEqual([]);
  });

  it("name the deadline of a withdrawal, once", async () => {
    await mirror(reading(11, { withdrawal }), reading(6));
    await mirror(reading(12, { withdrawal, totalClaimed: 900n }), reading(7));
    expect(await readEvents()).toEqual([
      {
        type: "channel.withdrawing",
        key: key.channelId,
        payload: {
          ...{ ...facts, charged: "900", claimed: "0", amount: "700" },
          deadline: new Date((withdrawal.initiatedAt + 86_400) * 1_000)
            .toISOString()
            .replace(".000Z", "Z"),
        },
      },
    ]);
  });

  it("tell of a claim when it is final", async () => {
    await mirror(reading(11, { totalClaimed: 900n }), reading(6));
    expect(await readEvents()).toEqual([]);
    await mirror(reading(12, { totalClaimed: 900n }), reading(11, { totalClaimed: 900n }));
    await mirror(reading(13, { totalClaimed: 900n }), reading(12, { totalClaimed: 900n }));
    const payload = { ...facts, charged: "900", claimed: "900", blockNumber: 11 };
    expect(await readEvents()).toEqual([{ type: "channel.claimed", key: key.channelId, payload }]);
  });

  it("tell of money that was lost, and not of money that came back", async () => {
    await mirror(reading(11, { balance: 250n }));
    await mirror(reading(12));
    const payload = { ...facts, charged: "900", lost: "650" };
    expect(await readEvents()).toEqual([{ type: "channel.lost", key: key.channelId, payload }]);
  });

  it("tell of each payout to the recipient", async () => {
    await beginPayouts(ledger, { ...place, block: 0 });
    const payout = { receiver: config.receiver, token: config.token, transaction: word(7) };
    const block = { number: 3, hash: word(3) };
    const payouts = [{ ...payout, amount: 900n, logIndex: 4, block }];
    await postPayouts(ledger, { ...place, after: 0, to: 9, payouts });
    const { network, contract, asset, payTo } = facts;
    expect(await readEvents()).toEqual([
      {
        type: "channel.settled",
        key: config.receiver,
        payload: {
          ...{ network, contract, asset, payTo, amount: "900" },
          ...{ transactionHash: word(7), blockNumber: 3 },
        },
      },
    ]);
  });
});
