import { describe, expect, it } from "vitest";
import { ledgerForEachTest } from "../../testing/ledger-for-each-test.ts";
import { network, relayer, transaction } from "../../testing/ledger-payments.ts";
import { engines } from "../../testing/settling-devnet.ts";
import { leaseNameOf } from "../relayer-lease.ts";
import { findOpenIds } from "./find-transactions.ts";
import { giveUpTransactions } from "./settle-transaction.ts";
import { storeTransaction } from "./store-transaction.ts";

describe.each(engines)("transactions without payments, on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);

  it("are given up by others only while no process holds their relayer", async () => {
    const owner = await join("owner");
    const other = await join("other");
    const name = leaseNameOf({ network, relayer });
    const lease = await owner.leases.acquire({ name, owner: "owner", ttlMs: 60_000 });
    if (lease === undefined) throw new Error("The lease is taken");
    const filler = transaction(0, []);
    expect(await storeTransaction(owner, lease, filler)).toBe("stored");
    await giveUpTransactions(other, { network, relayer });
    expect(await findOpenIds(other, { network, relayer })).toEqual([filler.id]);
    await owner.leases.release(lease);
    await giveUpTransactions(other, { network, relayer });
    expect(await findOpenIds(other, { network, relayer })).toEqual([]);
  });
});
