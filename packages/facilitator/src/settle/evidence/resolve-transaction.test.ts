import { RpcClosedError, type RpcRequester } from "@coinslot/chain";
import { multicall3Address } from "@coinslot/protocol";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { asset, authorization, hash, order } from "../../testing/ledger-payments.ts";
import { encodeBatch } from "../batch-calldata.ts";
import { resolveTransaction } from "./resolve-transaction.ts";

const relayer = privateKeyToAccount(hash(1));

/** Answers nothing: these payments need no question to a node. */
const rpc: RpcRequester = {
  chainId: 9745,
  request: () => Promise.reject(new RpcClosedError(9745)),
  requestMany: () => Promise.reject(new RpcClosedError(9745)),
};

const payment: OrderedPayment = {
  order,
  payment: {
    id: "left",
    kind: "eip3009",
    authorization: authorization(),
    value: 10n,
    validBefore: 2n ** 256n - 1n,
    fingerprint: "GET /a",
    unusedAtBlock: undefined,
    transactionId: "one",
    attempts: 8,
    settlesAlone: false,
    inclusion: undefined,
  },
};

/**
 * Failures of a transaction that was signed for some calls, with one payment left in it. A block
 * holds its first form, or a later filler.
 */
async function failuresOf(calls: number, included: "payments" | "filler" = "payments") {
  const call = { target: asset, callData: "0x00" } as const;
  const raw = await relayer.signTransaction({
    to: calls === 1 ? asset : multicall3Address,
    data: calls === 1 ? call.callData : encodeBatch(Array.from({ length: calls }, () => call)),
    gas: 500_000n,
    gasPrice: 1n,
    nonce: 0,
    chainId: 9745,
  });
  const { outcomes } = await resolveTransaction({
    network: { rpc, serveAfter: () => 0, finalAfter: 0 },
    transaction: {
      id: "one",
      network: "eip155:9745",
      relayer: asset,
      nonce: 0,
      gasLimit: 500_000n,
      createdAt: 0,
      payments: [payment],
      broadcasts: (["payments", "filler"] as const).map((content) => ({
        hash: hash(content === included ? 2 : 3),
        raw,
        content,
        maxFeePerGas: 1n,
        maxPriorityFeePerGas: undefined,
        createdAt: 0,
      })),
    },
    receipt: {
      transactionHash: hash(2),
      blockNumber: 5,
      blockHash: hash(5),
      isSuccess: true,
      gasUsed: 300_000n,
      logs: [],
    },
    depth: 0,
  });
  return outcomes.flatMap(({ failed = [] }) => failed);
}

describe("the share of gas of a payment", () => {
  it("counts every payment at signing, even if some have left the transaction", async () => {
    expect(await failuresOf(3)).toMatchObject([{ gasShare: 100_000n }]);
  });

  it("is the whole gas for the only payment of a transaction", async () => {
    expect(await failuresOf(1)).toMatchObject([{ gasShare: 300_000n }]);
  });

  it("is nothing of a filler's gas, which no payer is billed for", async () => {
    const [failure, ...others] = await failuresOf(1, "filler");
    expect(others).toEqual([]);
    expect(failure).toMatchObject({ ids: ["left"], billedGas: 0n });
    expect(failure?.gasShare).toBeUndefined();
  });
});
