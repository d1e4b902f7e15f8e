import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { authorization, hash, network, order, payer, wish } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";

describe.each(engines)("runs for nothing on %s", (engine) => {
  const { join, wait } = ledgerForEachTest(engine);

  it("limits how often a payer may let handlers run for nothing, and forgets it after a while", async () => {
    const ledger = await join("one");
    const wanted = wish();
    const again = async () => {
      const reserved = await ledger.reserve(wanted);
      if (reserved.outcome === "reserved") {
        await ledger.release({ token: reserved.token, payer, countsAgainstPayer: true });
      }
      return reserved.outcome;
    };
    expect([await again(), await again(), await again()]).toEqual(Array(3).fill("reserved"));
    expect(await again()).toBe("released_too_often");
    expect(
      await ledger.reserve(wish({ id: authorization({ payer: `0x${"ee".repeat(20)}` }) })),
    ).toMatchObject({
      outcome: "reserved",
    });
    wait(1_001);
    expect(await again()).toBe("reserved");
  });

  it("counts a run as free whose payment failed on the chain, and not one that is pending", async () => {
    const ledger = await join("one");
    for (const [run, fails] of [false, true, true, true].entries()) {
      const nonce = hash(100 + run);
      const request = wish({ order, id: { ...wish().id, nonce } });
      const reserved = await ledger.reserve(request);
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      const { paymentId, token } = reserved;
      const reason = "invalid_exact_evm_transaction_failed";
      if (fails) await ledger.recordOutcomes([{ failed: [{ ids: [paymentId], reason }] }]);
      const { payer } = request.id;
      await ledger.release({ token, payer, countsAgainstPayer: "if_failed" });
      // Once only: its token is gone.
      await ledger.release({ token, payer, countsAgainstPayer: "if_failed" });
    }
    const other = wish({ id: { ...wish().id, nonce: hash(200) } });
    expect(await ledger.reserve(other)).toEqual({ outcome: "released_too_often" });
  });

  it("does not count a run as free whose payment was not sent in time", async () => {
    const ledger = await join("one");
    for (const run of [1, 2, 3]) {
      const id = { ...wish().id, nonce: hash(300 + run) };
      const reserved = await ledger.reserve(wish({ order, id, validBefore: 100n }));
      if (reserved.outcome !== "reserved") throw new Error(reserved.outcome);
      expect(await ledger.expire({ network, before: 100n })).toMatchObject([{ state: "failed" }]);
      const { token } = reserved;
      await ledger.release({ token, payer, countsAgainstPayer: "if_failed" });
    }
    expect(await ledger.reserve(wish())).toMatchObject({ outcome: "reserved" });
  });
});
