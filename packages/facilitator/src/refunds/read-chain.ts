import { isRevert, RpcUnavailableError } from "@coinslot/chain";
import type { Address, Hex } from "@coinslot/protocol";
import { encodeFunctionData, parseAbi } from "viem";
import * as z from "zod";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import { schemeOf } from "../schemes/registry.ts";
import type { SettlementNetwork } from "../settle/context.ts";

/** Facts of the chain about a refund, at the end of one block. */
export interface RefundReading {
  blockNumber: bigint;
  /** Accounts that have used its nonce. */
  usedBy: readonly Address[];
  /** An account's state could not be read: the token is none, or no EIP-3009 token. */
  isUnreadable: boolean;
  payerHasCode: boolean;
  /** Of the float; `undefined` without one. */
  balance: bigint | undefined;
  /** True if a plain transfer of the float to the payer reverts. */
  isRefused: boolean;
}

const abi = parseAbi([
  "function balanceOf(address account) view returns (uint256)",
  "function transfer(address to, uint256 value) returns (bool)",
]);
const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform(BigInt);
const hex = z.string().regex(/^0x[0-9a-f]*$/i);
/** Code of an account that delegates to a contract (EIP-7702): its key still moves its tokens. */
const delegation = "0xef0100";

/**
 * Reads all that decides about a refund's signature, at the head.
 *
 * @throws RpcError when the chain is unreachable, ZodError when it returns malformed data
 */
export async function readRefund(
  { rpc, watcher }: Pick<SettlementNetwork, "rpc" | "watcher">,
  row: RefundRow,
  options: { accounts: readonly Address[]; float: Address | undefined; value: bigint },
): Promise<RefundReading> {
  const { accounts, float, value } = options;
  const { number: blockNumber } = await watcher.read(0);
  const block = `0x${blockNumber.toString(16)}`;
  const call = (to: Address, data: Hex, from?: Address) => ({
    method: "eth_call",
    params: [{ to, data, ...(from ? { from } : {}) }, block],
  });
  const { nonceStateCall, isUsed } = schemeOf({ kind: "eip3009" });
  const ids = accounts.map((payer) => ({
    network: row.network,
    asset: row.asset,
    payer,
    nonce: row.nonce,
  }));
  const ofFloat =
    float === undefined
      ? []
      : [
          call(row.asset, encodeFunctionData({ abi, functionName: "balanceOf", args: [float] })),
          call(
            row.asset,
            encodeFunctionData({ abi, functionName: "transfer", args: [row.payer, value] }),
            float,
          ),
        ];
  const outcomes = await rpc.requestMany(
    [
      { method: "eth_getCode", params: [row.payer, block] },
      ...ids.map((id) => {
        const { target, callData } = nonceStateCall(id);
        return call(target, callData);
      }),
      ...ofFloat,
    ],
    { minBlock: blockNumber },
  );
  for (const outcome of outcomes) {
    if (!outcome.ok && outcome.error instanceof RpcUnavailableError) throw outcome.error;
  }
  const [code, ...others] = outcomes;
  const codeText = hex.parse(code?.ok ? code.result : undefined).toLowerCase();
  const states = ids.map((id, index) => {
    const outcome = others[index];
    const read = word.safeParse(outcome?.ok ? outcome.result : undefined).data;
    return read === undefined ? undefined : isUsed(id, read);
  });
  const [balance, trial] = others.slice(ids.length);
  return {
    blockNumber,
    usedBy: accounts.filter((_, index) => states[index] === true),
    isUnreadable: states.includes(undefined),
    payerHasCode: codeText !== "0x" && !codeText.startsWith(delegation),
    balance:
      float === undefined ? undefined : word.safeParse(balance?.ok ? balance.result : "").data,
    isRefused: trial?.ok === false && isRevert(trial.error),
  };
}
