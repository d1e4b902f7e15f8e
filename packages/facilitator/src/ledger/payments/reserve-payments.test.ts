import type { AuthorizationId } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { order, payer, wish } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { lookUpPayment } from "../queries/look-up-payments.ts";
import { releasePayment } from "./release-payment.ts";
import { reservePayment } from "./reserve-payments.ts";

describe.each(engines)("reservations on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  it("admit one of many racers for an authorization, across processes", async () => {
    const [one, two] = [await join("one"), await join("two")];
    const wanted = wish();
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => reservePayment(index % 2 ? one : two, wanted)),
    );
    expect(results.filter(({ outcome }) => outcome === "reserved")).toHaveLength(1);
    expect(results.filter(({ outcome }) => outcome === "in_use")).toHaveLength(9);
  });

  it("keep equal nonces of other payers, assets and networks apart", async () => {
    const ledger = await join("one");
    const { id } = wish();
    const others: Partial<AuthorizationId>[] = [
      {},
      { payer: `0x${"be".repeat(20)}` },
      { asset: `0x${"ab".repeat(20)}` },
      { network: "eip155:988" },
    ];
    const results = await Promise.all(
      others.map((other) => reservePayment(ledger, wish({ order, id: { ...id, ...other } }))),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(others.map(() => "reserved"));
  });

  it("give a released authorization to the next request", async () => {
    const ledger = await join("one");
    const wanted = wish();
    const first = await reservePayment(ledger, wanted);
    if (first.outcome !== "reserved") throw new Error(first.outcome);
    await releasePayment(ledger, { token: first.token, payer, countsAgainstPayer: false });
    expect(await lookUpPayment(ledger, wanted)).toMatchObject({ availability: "free" });
    const other = { ...wanted, fingerprint: "GET /b" };
    expect(await reservePayment(ledger, other)).toMatchObject({ outcome: "reserved" });
  });
});
