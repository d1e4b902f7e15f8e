import type { ChannelConfig, Hex } from "@coinslot/protocol";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";
import { type ChannelClaim, concludeClaims, insertClaims, isPublished } from "./channel-claims.ts";
import { chargeChannel } from "./charge-channel.ts";
import { lowerCharge } from "./end-charge.ts";
import { openChannel, readChannel } from "./open-channel.ts";

const word = (value: number): Hex => numberToHex(value, { size: 32 });
const account = (value: number): Hex => numberToHex(value, { size: 20 });
const signature: Hex = `0x${"ab".repeat(65)}`;
const network = "eip155:9745";
const key: ChannelKey = { network, contract: account(0x4020), channelId: word(1) };
const config: ChannelConfig = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: word(0),
};

describe.each(engines)("a charge in advance, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
    await openChannel(first, { ...key, config, totalClaimed: 0n });
    await shared.read(sql`update channels set secure = ${first.dialect.amount.encode(1_000n)}`);
    const charge = { ...key, id: "charge", seen: 0n, base: 0n, amount: 10n, ceiling: 10n };
    await chargeChannel(first, { ...charge, signature, fingerprint: "GET /weather" });
  });

  function claim(totalClaimed: bigint, transactionId = "transaction", ledger = second) {
    const row: ChannelClaim = { ...key, totalClaimed, ceiling: 10n, signature };
    return ledger.write((transaction) =>
      insertClaims(ledger, transaction, { transactionId, claims: [row] }),
    );
  }

  const lower = (amount: bigint) => lowerCharge(first, { ...key, id: "charge", base: 0n, amount });
  const charged = async () => (await readChannel(first, key))?.charged;

  it("is lowered by no unit that a claim asks for, until that claim has failed", async () => {
    await claim(10n);
    expect(await lower(0n)).toBe(false);
    expect(await lower(9n)).toBe(false);
    expect(await charged()).toBe(10n);
    await concludeClaims(first, [{ ...key, transactionId: "transaction", isDone: false }]);
    expect(await lower(0n)).toBe(true);
  });

  it("is lowered by no unit that the chain has paid", async () => {
    const { encode } = first.dialect.amount;
    const none = encode(0n);
    await shared.read(sql`insert into channel_states (network, contract, channel_id, balance, claimed,
      refund_nonce, block_number, block_hash, is_moving) values (${network}, ${key.contract},
      ${key.channelId}, ${encode(100n)}, ${encode(6n)}, ${none}, 1, ${word(9)}, 0)`);
    expect(await lower(5n)).toBe(false);
    expect(await lower(6n)).toBe(true);
  });

  it("a charge in advance that was lowered is claimed no more, and nothing of such a claim is stored", async () => {
    expect(await lower(4n)).toBe(true);
    await expect(claim(10n)).rejects.toMatchObject({ channelIds: [key.channelId] });
    expect(await shared.read(sql`select * from channel_claims`)).toEqual([]);
    await claim(4n);
  });

  it("is lowered, or claimed, of both at once in two processes", async () => {
    const outcomes = await Promise.allSettled([lower(0n), claim(10n)]);
    const [lowered, claimed] = outcomes;
    const isLowered = lowered.status === "fulfilled" && lowered.value;
    expect(isLowered).toBe(claimed.status === "rejected");
    expect(await charged()).toBe(isLowered ? 0n : 10n);
  });

  it("shows its voucher by a claim, and no other signature of the same ceiling", async () => {
    await claim(10n);
    const voucher = { ...key, ceiling: 10n };
    expect(await isPublished(first, { ...voucher, signature })).toBe(true);
    const another: Hex = `0x${"cd".repeat(65)}`;
    expect(await isPublished(first, { ...voucher, signature: another })).toBe(false);
  });
});
