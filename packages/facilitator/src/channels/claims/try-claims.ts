import { type RpcRequester, RpcResponseError } from "@coinslot/chain";
import { channelSettlementAbi, type Hex } from "@coinslot/protocol";
import { decodeErrorResult, encodeFunctionData } from "viem";
import * as z from "zod";
import { withoutLagging } from "../../settle/evidence/without-lagging.ts";
import type { EscrowContext } from "../channels-context.ts";
import type { ClaimCandidate } from "./choose-claims.ts";

const abi = channelSettlementAbi;

/** A row of a claim, before its trial. */
export type ClaimRow = Pick<ClaimCandidate, "config" | "voucher" | "totalClaimed">;

/** A row that cannot be claimed, with the escrow's error or the node's words. */
export interface RefusedRow<Row extends ClaimRow = ClaimCandidate> {
  candidate: Row;
  error: string;
}

/** Rows after their trials. */
export interface TriedRows<Row extends ClaimRow = ClaimCandidate> {
  passed: Row[];
  refused: RefusedRow<Row>[];
}

/** The row of a claim in the contract's form. */
export function rowOf({ config, voucher, totalClaimed }: ClaimRow) {
  return {
    voucher: { channel: config, maxClaimableAmount: voucher.ceiling },
    signature: voucher.signature,
    totalClaimed,
  };
}

/**
 * Tries each row alone, at the newest block, as its authorizer would claim it: that needs no
 * signature. One row that reverts would revert a whole batch. A row without a result is refused,
 * too: its neighbours do not wait for it.
 *
 * @throws RpcError where no node returns the result of any trial
 */
export async function tryClaims<Row extends ClaimRow>(
  { settlement: { network }, place: { contract } }: EscrowContext,
  candidates: readonly Row[],
  rpc: RpcRequester = network.rpc,
): Promise<TriedRows<Row>> {
  const outcomes = await rpc.requestMany(
    candidates.map((candidate) => ({
      method: "eth_call",
      params: [
        {
          from: candidate.config.receiverAuthorizer,
          to: contract,
          data: encodeFunctionData({ abi, functionName: "claim", args: [[rowOf(candidate)]] }),
        },
        "latest",
      ],
    })),
  );
  const passed: Row[] = [];
  const refused: RefusedRow<Row>[] = [];
  let unanswered = 0;
  let fault: Error | undefined;
  for (const [index, candidate] of candidates.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) throw new TypeError("A node returned too few results");
    if (outcome.ok) passed.push(candidate);
    else if (outcome.error instanceof RpcResponseError) {
      refused.push({ candidate, error: nameOf(outcome.error) });
    } else {
      fault = outcome.error;
      unanswered += 1;
      refused.push({ candidate, error: "no node has returned the result of its trial" });
    }
  }
  if (fault !== undefined && unanswered === candidates.length) throw fault;
  return { passed, refused };
}

/**
 * Tries refused rows at each other endpoint that does not lag. One that passes at any of them has
 * passed: a node that reverts trials would hold up a claim until the payer's withdrawal ends.
 */
export async function tryElsewhere<Row extends ClaimRow>(
  escrow: EscrowContext,
  { passed, refused }: TriedRows<Row>,
): Promise<TriedRows<Row>> {
  const { rpc } = escrow.settlement.network;
  const rows = refused.map(({ candidate }) => candidate);
  if (rpc.endpoints.length < 2 || rows.length === 0) return { passed, refused };
  const trials = await Promise.allSettled(
    withoutLagging(rpc).map((endpoint) => tryClaims(escrow, rows, endpoint)),
  );
  const good = new Set(
    trials.flatMap((trial) => (trial.status === "fulfilled" ? trial.value.passed : [])),
  );
  return {
    passed: [...passed, ...rows.filter((row) => good.has(row))],
    refused: refused.filter(({ candidate }) => !good.has(candidate)),
  };
}

const dataSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]{8,}$/)]);

/** The name of the escrow's error; else the node's words. */
export function nameOf(error: RpcResponseError): string {
  const data = dataSchema.safeParse(Reflect.get(error, "data")).data as Hex | undefined;
  if (data === undefined) return error.details;
  try {
    return decodeErrorResult({ abi, data }).errorName;
  } catch {
    return data;
  }
}
