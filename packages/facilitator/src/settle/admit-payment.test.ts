import { type RpcRequester, systemClock } from "@coinslot/chain";
import type { Hex } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { queueDeposit } from "../ledger/channels/queue-deposit.ts";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { recordOutcomes } from "../ledger/payments/record-outcomes.ts";
import { ledgerForEachTest } from "../testing/ledger-for-each-test.ts";
import { hash, inclusion, network, queue, submit, wish } from "../testing/ledger-payments.ts";
import { engines } from "../testing/settling-devnet.ts";
import { type AdmissionContext, admitPayment } from "./admit-payment.ts";
import { createDebitedPayments } from "./evidence/debited-payments.ts";

/** A node on which no authorization is used. */
const rpc: RpcRequester = {
  chainId: 9745,
  request: async () => Promise.reject(new Error("Only many calls at once")),
  requestMany: async (calls) =>
    calls.map(() => ({ ok: true, result: `0x${"0".repeat(64)}`, endpoint: 0, failures: [] })),
};

function contextOf(ledger: LedgerContext, node = rpc, head?: bigint): AdmissionContext {
  const header = { hash: hash(1), parentHash: hash(2), timestamp: 3n, baseFeePerGas: 4n };
  const watcher = {
    subscribe: () => () => undefined,
    latest: () => (head === undefined ? undefined : { ...header, number: head, gasLimit: 5n }),
  };
  const debited = createDebitedPayments({ rpc: node, watcher, clock: systemClock });
  return { ledger, settlements: new Map([[network, { network: { debited, watcher } }]]) };
}

/** A node on which one authorization is used. */
function nodeWith(nonce: Hex): RpcRequester {
  return {
    ...rpc,
    requestMany: async (calls) =>
      calls.map(({ params }) => {
        const word = JSON.stringify(params).includes(nonce.slice(2)) ? "1" : "0";
        return { ok: true, result: `0x${word.padStart(64, "0")}`, endpoint: 0, failures: [] };
      }),
  };
}

/** A node on which no authorization is used, and every balance is this. */
function nodeOf(balance: bigint): RpcRequester {
  return {
    ...rpc,
    requestMany: async (calls) =>
      calls.map(({ params }) => {
        const isBalance = JSON.stringify(params).includes("0x70a08231");
        const word = (isBalance ? balance : 0n).toString(16).padStart(64, "0");
        return { ok: true, result: `0x${word}`, endpoint: 0, failures: [] };
      }),
  };
}

/** The ledger, with work of another process right after its first write. */
function afterFirstWrite(ledger: LedgerContext, work: () => Promise<unknown>): LedgerContext {
  let isDone = false;
  const write: LedgerContext["write"] = async (...args) => {
    const result = await ledger.write(...args);
    if (!isDone) {
      isDone = true;
      await work();
    }
    return result;
  };
  return { ...ledger, write };
}

describe.each(engines)("an admission on %s", (engine) => {
  const { join } = ledgerForEachTest(engine);
  const balance = { amount: 10n, blockNumber: BigInt(inclusion.blockNumber) };

  it("admits a payer whose other payment's outcome is recorded before it looks again", async () => {
    const ledger = await join("one");
    // Executed by the end of the block at which the balance was read, and still open.
    const id = await submit(ledger);
    const interfered = afterFirstWrite(ledger, () =>
      recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]),
    );
    const admitted = await admitPayment(contextOf(interfered), wish({ balance }));
    expect(admitted).toMatchObject({ outcome: "reserved" });
  });

  it("refuses a payer whose other payment is executed after the balance was read", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    const earlier = { amount: 10n, blockNumber: balance.blockNumber - 1n };
    const interfered = afterFirstWrite(ledger, () =>
      recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]),
    );
    const admitted = await admitPayment(contextOf(interfered), wish({ balance: earlier }));
    expect(admitted).toMatchObject({ outcome: "over_committed" });
  });

  it("admits a payer whose deposit into a channel its balance lacks already, and no other", async () => {
    const ledger = await join("one");
    const wanted = wish({ balance });
    const { network: of, asset: token, payer } = wanted.id;
    const nonce = hash(77);
    await queueDeposit(ledger, {
      network: of,
      token,
      payer,
      nonce,
      contract: token,
      channelId: nonce,
      signer: payer,
      amount: 10n,
      validBefore: 9n,
      payerHasCode: false,
      data: "0x12",
      sinceNumber: 4,
      gas: 1n,
      caller: undefined,
      balance: 10n,
      limits: { perSigner: 1, failedPerPayer: 1 },
      callerGasPerHour: 1n,
    });
    const admit = (node: RpcRequester) => admitPayment(contextOf(ledger, node), wanted);
    expect(await admit(rpc)).toMatchObject({ outcome: "over_committed" });
    expect(await admit(nodeWith(nonce))).toMatchObject({ outcome: "reserved" });
  });

  it("admits a payer whose balance was read while its block came, and no other", async () => {
    const ledger = await join("one");
    await submit(ledger);
    // In the balance of the next block, which the node returned, the other payment is missing.
    const admit = (amount: bigint) =>
      admitPayment(contextOf(ledger, nodeOf(amount)), wish({ balance }));
    expect(await admit(19n)).toMatchObject({ outcome: "over_committed" });
    expect(await admit(20n)).toMatchObject({ outcome: "reserved" });
  });

  it.each([
    ["of an old block by one 100,000 blocks below the head", 7n, 900_000],
    ["of a newer block by its own", 900_001n, 900_001],
  ])("records a trial %s", async (_, blockNumber, unusedAtBlock) => {
    const context = contextOf(await join("one"), rpc, 1_000_000n);
    const wanted = wish({ balance: { ...balance, blockNumber } });
    expect(await admitPayment(context, wanted)).toMatchObject({
      outcome: "reserved",
      unusedAtBlock,
    });
  });

  it("refuses a payer whose other payment is executed after the balance was read, by any false head", async () => {
    const ledger = await join("one");
    const id = await submit(ledger);
    await recordOutcomes(ledger, [{ confirmed: { ids: [id], inclusion } }]);
    const earlier = { amount: 10n, blockNumber: balance.blockNumber - 1n };
    const context = contextOf(ledger, rpc, 1_000_000_000n);
    const admitted = await admitPayment(context, wish({ balance: earlier }));
    expect(admitted).toMatchObject({ outcome: "over_committed" });
  });

  it("writes once for a payer whose open payments alone exceed its balance", async () => {
    const ledger = await join("one");
    await queue(ledger);
    let writes = 0;
    const counting: LedgerContext = {
      ...ledger,
      write: (...args) => {
        writes += 1;
        return ledger.write(...args);
      },
    };
    const admitted = await admitPayment(contextOf(counting), wish({ balance }));
    expect(admitted).toMatchObject({ outcome: "over_committed" });
    expect(writes).toBe(1);
  });
});
