import {
  isRevert,
  type RpcCall,
  type RpcOutcome,
  type RpcRequester,
  RpcUnavailableError,
} from "@coinslot/chain";
import type { Address, AuthorizationId, Hex } from "@coinslot/protocol";
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
const { nonceStateCall, isUsed } = schemeOf({ kind: "eip3009" });
const word = z
  .string()
  .regex(/^0x[0-9a-f]{64}$/i)
  .transform(BigInt);
const hex = z.string().regex(/^0x[0-9a-f]*$/i);
/** Code of an account that delegates to a contract (EIP-7702): its key still moves its tokens. */
const delegation = "0xef0100";

/** A nonce of a token. */
type TokenNonce = Pick<RefundRow, "network" | "asset" | "nonce">;

/** Accounts that have used a nonce, and whether some state could not be read. */
export type RefundUses = Pick<RefundReading, "usedBy" | "isUnreadable">;

/**
 * Reads which of some accounts have used a nonce, at the end of a block.
 *
 * @throws RpcError when the node does not answer all calls, or has an error of its own
 */
export async function readUses(
  rpc: RpcRequester,
  row: TokenNonce,
  { accounts, blockNumber }: { accounts: readonly Address[]; blockNumber: bigint },
): Promise<RefundUses> {
  const calls = useCalls(row, accounts, `0x${blockNumber.toString(16)}`);
  const outcomes = await rpc.requestMany(calls);
  for (const outcome of outcomes) {
    // Without an answer, or by an error of the node's own, nothing is known of the token.
    if (!outcome.ok && !isRevert(outcome.error)) throw outcome.error;
  }
  return usesOf(row, accounts, outcomes);
}

function useCalls(row: TokenNonce, accounts: readonly Address[], block: Hex): RpcCall[] {
  return accounts.map((account) => {
    const { target: to, callData: data } = nonceStateCall(idOf(row, account));
    return { method: "eth_call", params: [{ to, data }, block] };
  });
}

function usesOf(
  row: TokenNonce,
  accounts: readonly Address[],
  outcomes: readonly RpcOutcome[],
): RefundUses {
  const states = accounts.map((account, index) => {
    const outcome = outcomes[index];
    const read = word.safeParse(outcome?.ok ? outcome.result : undefined).data;
    return read === undefined ? undefined : isUsed(idOf(row, account), read);
  });
  return {
    usedBy: accounts.filter((_, index) => states[index] === true),
    isUnreadable: states.includes(undefined),
  };
}

function idOf({ network, asset, nonce }: TokenNonce, payer: Address): AuthorizationId {
  return { network, asset, payer, nonce };
}

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
  const block: Hex = `0x${blockNumber.toString(16)}`;
  const call = (to: Address, data: Hex, from?: Address) => ({
    method: "eth_call",
    params: [{ to, data, ...(from ? { from } : {}) }, block],
  });
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
      ...useCalls(row, accounts, block),
      ...ofFloat,
    ],
    { minBlock: blockNumber },
  );
  for (const outcome of outcomes) {
    if (!outcome.ok && outcome.error instanceof RpcUnavailableError) throw outcome.error;
  }
  const [code, ...others] = outcomes;
  const codeText = hex.parse(code?.ok ? code.result : undefined).toLowerCase();
  const [balance, trial] = others.slice(accounts.length);
  return {
    blockNumber,
    ...usesOf(row, accounts, others),
    payerHasCode: codeText !== "0x" && !codeText.startsWith(delegation),
    balance:
      float === undefined ? undefined : word.safeParse(balance?.ok ? balance.result : "").data,
    isRefused: trial?.ok === false && isRevert(trial.error),
  };
}
