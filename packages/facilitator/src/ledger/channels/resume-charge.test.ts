import { type Hex, toLowerHex } from "@coinslot/protocol";
import { sql } from "kysely";
import { numberToHex } from "viem";
import { beforeEach, describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { engines } from "../../testing/settling-devnet.ts";
import type { LedgerContext } from "../ledger-context.ts";
import { evictChannelAnswers, forgetChannelAnswers, readChannelAnswer } from "./channel-answers.ts";
import { type Charge, chargeChannel } from "./charge-channel.ts";
import { deliverCharges, lowerCharge } from "./end-charge.ts";
import { openChannel, readChannel } from "./open-channel.ts";
import { countRun, giveUpCharge, takeCharge } from "./resume-charge.ts";

const account = (value: number): Hex => numberToHex(value, { size: 20 });
const key = {
  network: "eip155:9745",
  contract: account(0x4020),
  channelId: numberToHex(1, { size: 32 }),
} as const;
const config = {
  payer: account(1),
  payerAuthorizer: account(2),
  receiver: account(3),
  receiverAuthorizer: account(4),
  token: account(5),
  withdrawDelay: 86_400,
  salt: numberToHex(0, { size: 32 }),
};
const charge: Charge = {
  ...key,
  id: "charge",
  seen: 0n,
  base: 0n,
  amount: 10n,
  ceiling: 10n,
  signature: toLowerHex(`0x${"ab".repeat(65)}`),
  fingerprint: "GET /weather",
};
const next: Charge = { ...charge, id: "next", seen: 10n, base: 10n, ceiling: 20n };

describe.each(engines)("a charge whose answer did not arrive, on %s", (engine) => {
  const shared = ledgerForEachTest(engine);
  let first: LedgerContext;
  let second: LedgerContext;

  beforeEach(async () => {
    first = await shared.join("first");
    second = await shared.join("second");
    await openChannel(first, { ...key, config, totalClaimed: 0n });
    const secure = first.dialect.amount.encode(1_000n);
    await shared.read(sql`update channels set secure = ${secure}`);
    await chargeChannel(first, charge);
  });

  it("stays with the process that charged it, until that gives it up", async () => {
    expect(await takeCharge(second, charge)).toBe(false);
    expect(await takeCharge(first, charge)).toBe(true);
    await giveUpCharge(second, charge);
    expect(await takeCharge(second, charge)).toBe(false);
    await giveUpCharge(first, charge);
    expect(await takeCharge(second, charge)).toBe(true);
    expect(await takeCharge(first, charge)).toBe(false);
    expect(await readChannel(first, key)).toMatchObject({ last: { owner: "second", runs: 1 } });
  });

  it("is taken from a process that died, which then marks and lowers nothing", async () => {
    await shared.silence("first");
    expect(await takeCharge(second, charge)).toBe(true);
    await deliverCharges(first, { ...key, charges: [charge] });
    expect(await lowerCharge(first, { ...charge, base: 0n, amount: 0n })).toBe(false);
    expect(await readChannel(first, key)).toMatchObject({
      charged: 10n,
      last: { isDelivered: false, owner: "second" },
    });
  });

  it("is taken by one of many that ask at once", async () => {
    await giveUpCharge(first, charge);
    const third = await shared.join("third");
    const outcomes = await Promise.all(
      [second, third].flatMap((ledger) =>
        Array.from(
          { length: 10 },
          async () => (await takeCharge(ledger, charge)) && ledger.processId,
        ),
      ),
    );
    expect(new Set(outcomes.filter(Boolean)).size).toBe(1);
  });

  it("is not taken once it is delivered, or another charge has followed", async () => {
    await chargeChannel(second, next);
    expect(await takeCharge(first, charge)).toBe(false);
    await deliverCharges(second, { ...key, charges: [next] });
    await giveUpCharge(second, next);
    expect(await takeCharge(first, next)).toBe(false);
  });

  it("runs its handler once more, for its owner, and no further time", async () => {
    expect(await countRun(second, charge)).toBe(false);
    expect(await countRun(first, charge)).toBe(true);
    expect(await countRun(first, charge)).toBe(false);
    await chargeChannel(first, next);
    expect(await countRun(first, next)).toBe(true);
  });

  it("is lowered to a part, and never raised by that", async () => {
    expect(await lowerCharge(first, { ...charge, base: 0n, amount: 11n })).toBe(false);
    expect(await lowerCharge(first, { ...charge, base: 0n, amount: 4n })).toBe(true);
    expect(await readChannel(first, key)).toMatchObject({
      charged: 4n,
      voucher: { ceiling: 10n },
      last: { id: "charge", amount: 4n },
    });
    expect(await lowerCharge(first, { ...charge, base: 0n, amount: 5n })).toBe(false);
  });

  it("keeps its answer for its buyer's key until the next charge has one, or its time ends", async () => {
    const expiresAt = first.now() + 1_000;
    const sealed = Buffer.from("sealed");
    const kept = { ...next, answer: { sealed, expiresAt } };
    expect(await readChannelAnswer(first, kept)).toBeUndefined();
    expect(await chargeChannel(first, kept)).toBe(true);
    expect(Buffer.from((await readChannelAnswer(second, kept)) ?? [])).toEqual(sealed);
    expect(await readChannelAnswer(second, charge)).toBeUndefined();
    const last = { ...kept, id: "last", seen: 20n, base: 20n, ceiling: 30n };
    expect(await chargeChannel(second, last)).toBe(true);
    expect(await readChannelAnswer(first, kept)).toBeUndefined();
    expect(await readChannelAnswer(first, last)).toBeDefined();
    shared.wait(1_000);
    expect(await readChannelAnswer(first, last)).toBeUndefined();
    expect(await shared.read(sql`select * from channel_answers`)).toHaveLength(1);
    await forgetChannelAnswers(first);
    expect(await shared.read(sql`select * from channel_answers`)).toHaveLength(0);
  });

  it("gives up the answers of other channels where there is no room", async () => {
    const answer = { sealed: Buffer.from("sealed"), expiresAt: first.now() + 1_000 };
    await chargeChannel(first, { ...next, answer });
    await evictChannelAnswers(first, { ...key, channelIds: [numberToHex(2, { size: 32 })] });
    expect(await readChannelAnswer(first, next)).toBeDefined();
    await evictChannelAnswers(first, { ...key, channelIds: [key.channelId] });
    expect(await readChannelAnswer(first, next)).toBeUndefined();
  });

  it("keeps no answer where nothing was charged", async () => {
    const answer = { sealed: Buffer.from("sealed"), expiresAt: first.now() + 1_000 };
    expect(await chargeChannel(first, { ...charge, id: "late", answer })).toBe(false);
    expect(await shared.read(sql`select * from channel_answers`)).toHaveLength(0);
  });
});
