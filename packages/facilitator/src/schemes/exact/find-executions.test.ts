import { createRpcPool, type RpcPool } from "@coinslot/chain";
import { type Hex, toLowerHex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { receiptCall } from "../../evm/transaction-receipt.ts";
import { type Intercept, type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import { idOf, submitAsStranger } from "../../testing/settling-actions.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../../testing/settling-devnet.ts";
import type { Claim } from "../scheme.ts";
import { findExecutions } from "./find-executions.ts";

let settling: SettlingDevnet;
let proxy: NodeProxy;
let rpc: RpcPool;
/** Answers in the node's stead; forwards everything by default. */
let intercept: Intercept;

beforeEach(async () => {
  settling = await startSettlingDevnet("sqlite");
  intercept = (_call, ask) => ask();
  proxy = await startNodeProxy(settling.devnet.rpcUrl, (call, ask) => intercept(call, ask));
  rpc = createRpcPool({ chainId: settling.devnet.chainId, rpcUrls: [proxy.url] });
});

afterEach(async () => {
  rpc.close();
  await proxy.close();
  await settling.stop();
});

/** A payment that a third party has executed, with the hash of that transaction. */
async function execute(): Promise<{ claim: Claim; hash: Hex }> {
  const paid = await settling.pay();
  const hash = await submitAsStranger(settling, paid);
  const { authorization, signature } = paid;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const claim: Claim = {
    kind: "eip3009",
    id: idOf(paid),
    authorization: {
      from: toLowerHex(from),
      to: toLowerHex(to),
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
    signature,
  };
  return { claim, hash };
}

async function outcomesOf(claims: readonly Claim[]) {
  const toBlock = await settling.devnet.client.getBlockNumber();
  const found = await findExecutions({ rpc, claims, fromBlock: () => 0n, toBlock });
  return claims.map((claim) => found.get(claim)?.outcome);
}

describe("a search for executions", () => {
  it.each([
    ["an error", { error: { code: -32603, message: "internal error" } }],
    ["malformed data", { result: { status: "maybe" } }],
    ["the receipt of another transaction", undefined],
  ])(
    "leaves a payment undecided alone for whose receipt the node returns %s",
    async (_, answer) => {
      const [one, two] = [await execute(), await execute()];
      const result = await rpc.request(receiptCall(two.hash));
      intercept = (call, ask) => {
        const isAsked = call.method === "eth_getTransactionReceipt" && call.params[0] === one.hash;
        return isAsked ? Promise.resolve(answer ?? { result }) : ask();
      };
      expect(await outcomesOf([one.claim, two.claim])).toEqual(["unknown", "executed"]);
    },
  );

  it.each([
    ["without a block", { blockNumber: null, blockHash: null, transactionHash: null }],
    ["of a block that was not asked for", { blockNumber: "0xffffffffffff" }],
    ["of another block than its receipt", { blockNumber: "0x0" }],
  ])("leaves a payment undecided alone whose log is %s", async (_, changes) => {
    const [one, two] = [await execute(), await execute()];
    intercept = async (call, ask) => {
      const answer = await ask();
      if (call.method !== "eth_getLogs" || !("result" in answer)) return answer;
      const logs = z.array(z.looseObject({ transactionHash: z.string() })).parse(answer.result);
      const result = logs.map((log) =>
        log.transactionHash === one.hash ? { ...log, ...changes } : log,
      );
      return { result };
    };
    expect(await outcomesOf([one.claim, two.claim])).toEqual(["unknown", "executed"]);
  });

  it.each([
    ["without topics", "a log"],
    ["without the topics of its payment", { topics: [] }],
    ["whose topics are no words", { topics: ["0x", "0x", "0x"] }],
  ])("leaves all payments undecided that a log may be about %s", async (_, log) => {
    const [one, two] = [await execute(), await execute()];
    intercept = async (call, ask) => {
      const answer = await ask();
      if (call.method !== "eth_getLogs" || !("result" in answer)) return answer;
      return { result: z.array(z.unknown()).parse(answer.result).toSpliced(0, 1, log) };
    };
    expect(await outcomesOf([one.claim, two.claim])).toEqual(["unknown", "executed"]);
  });

  it("leaves the payments of one token undecided whose logs the node refuses to return", async () => {
    const one = await execute();
    const asset = `0x${"0a".repeat(20)}` as const;
    const other: Claim = { ...one.claim, id: { ...one.claim.id, asset } };
    intercept = (call, ask) => {
      if (!JSON.stringify(call.params).includes(asset)) return ask();
      return Promise.resolve({ error: { code: -32005, message: "query returned too many logs" } });
    };
    expect(await outcomesOf([one.claim, other])).toEqual(["executed", "unknown"]);
  });

  it("fails where the node returns the logs of no token", async () => {
    const one = await execute();
    intercept = (call, ask) =>
      call.method === "eth_getLogs"
        ? Promise.resolve({ error: { code: -32005, message: "query returned too many logs" } })
        : ask();
    await expect(outcomesOf([one.claim])).rejects.toThrow("too many logs");
  });
});
