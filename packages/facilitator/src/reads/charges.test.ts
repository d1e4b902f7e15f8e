import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { chargeChannel } from "../ledger/channels/charge-channel.ts";
import { lowerCharge } from "../ledger/channels/end-charge.ts";
import { openChannel } from "../ledger/channels/open-channel.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { statsOperation } from "../stats/stats-operation.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { runRead } from "../testing/run-read.ts";
import { engines } from "../testing/settling-devnet.ts";
import { sellForTest } from "../testing/sold-payments.ts";
import { listRoutesOperation } from "./routes-operation.ts";
import { todayOperation } from "./today/today-operation.ts";

const contract = numberToHex(0x4020, { size: 20 });
const token = numberToHex(5, { size: 20 });
const network = "eip155:9745";
const key = { network, contract, channelId: numberToHex(1, { size: 32 }) } as const;
const config = {
  payer: contract,
  payerAuthorizer: contract,
  receiver: contract,
  receiverAuthorizer: contract,
  token,
  withdrawDelay: 900,
  salt: numberToHex(0, { size: 32 }),
} as const;
const charges = [
  ["GET /weather", 100n],
  ["GET /weather", 200n],
  ["GET /reports/:name", 50n],
] as const;

/** Charges a channel three times, and gives a part of the last one back. */
async function sellByChannel(ledger: LedgerContext): Promise<void> {
  await openChannel(ledger, { ...key, config, totalClaimed: 0n });
  await ledger.db
    .updateTable("channels")
    .set({ secure: ledger.dialect.amount.encode(999n) })
    .execute();
  let base = 0n;
  for (const [index, [route, amount]] of charges.entries()) {
    const charge = { ...key, id: `charge ${index}`, seen: base, base, amount, route };
    const signed = { ceiling: base + amount, signature: "0x12", fingerprint: "GET /" } as const;
    expect(await chargeChannel(ledger, { ...charge, ...signed })).toBe(true);
    base += amount;
  }
  const last = { ...key, id: "charge 2", base: 300n, amount: 10n, route: "GET /reports/:name" };
  expect(await lowerCharge(ledger, last)).toBe(true);
}

describe.each(engines)("charges of channels, on %s", (engine) => {
  const { join } = ledgerForEachTest(engine, { now: Date.now });

  it("are in the day's figures, in those of routes, and in the totals", async () => {
    const ledger = await join("one");
    await sellForTest(ledger);
    await sellByChannel(ledger);
    const charged = (value: string) => [{ network, asset: token, value }];

    const { today, lastWeek } = await runRead(todayOperation, ledger, {});
    expect(today.channels).toMatchObject({ charges: 3, charged: charged("310") });
    expect(today.payments.confirmed).toBe(1);
    expect(lastWeek.channels).toEqual({ charges: 0, charged: [] });

    const { routes } = await runRead(listRoutesOperation, ledger, {});
    expect(routes.find(({ route }) => route === "GET /weather")).toMatchObject({
      charges: 2,
      charged: charged("300"),
    });
    expect(routes.find(({ route }) => route === "GET /reports/:name")).toMatchObject({
      charges: 1,
      charged: charged("10"),
      sales: 0,
      income: [],
    });
    const earlier = { to: new Date(Date.now() - 2 * 86_400_000).toISOString() };
    expect(await runRead(listRoutesOperation, ledger, earlier)).toEqual({ routes: [] });

    const { money } = await runRead(statsOperation, ledger, { by: ["route"] });
    const ofToken = money.filter(({ asset }) => asset === token);
    expect(ofToken).toHaveLength(2);
    expect(ofToken.find(({ route }) => route === "GET /weather")).toMatchObject({
      ...{ payments: 0, charges: 2, income: 300n },
    });
  });
});
