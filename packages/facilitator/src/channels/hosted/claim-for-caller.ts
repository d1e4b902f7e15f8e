import type { ChannelCallAnswer, ChannelOperation, Hex } from "@coinslot/protocol";
import { type CallerCall, readCall } from "../../ledger/channels/caller-calls.ts";
import type { ChannelReading } from "../../ledger/channels/channel-state.ts";
import { gasOfClaims } from "../claims/send-claims.ts";
import { type RefusedRow, tryClaims, tryElsewhere } from "../claims/try-claims.ts";
import { type ChannelVotes, isUnanimous, readByEach } from "../watch/read-by-each.ts";
import { authorize, signBy } from "./authorize.ts";
import { type CallerRow, digestOf, encodeClaim, longSignature, rowsOf } from "./claim-rows.ts";
import { divideClaim, joinAnswers } from "./divide-claim.ts";
import { type Evidence, followCall } from "./follow-call.ts";
import type { HostedContext, HostedNetwork, Permit } from "./hosted-context.ts";
import { readAll, readHead, readServed, takesOf } from "./read-channel.ts";
import { callIdOf, requireGas, sendCall } from "./send-call.ts";
import { withTrial } from "./with-trial.ts";

type Claim = Extract<ChannelOperation, { type: "claim" }>;

const refusedRows = "invalid_batch_settlement_evm_claim_simulation_failed";
/** As long as an answer's message may be. */
const maxMessage = 1_024;
/** Rows of a call are not claimed by it again within this time, while a node shows them as paid. */
const recentMs = 600_000;

/**
 * Claims vouchers of a caller's channels in one transaction. Each row is tried alone. Where this
 * facilitator signs, a refused one is left out, and the answer names it. A signature of the
 * caller's covers all of them, so nothing is sent then.
 *
 * @throws FacilitatorError, CallerLimitedError, RpcError, ZodError, DatabaseError
 */
export async function claimForCaller(
  hosted: HostedContext,
  permitted: Permit,
  claim: Claim,
): Promise<ChannelCallAnswer> {
  const rows = rowsOf(permitted.network, claim.claims);
  const signature = claim.claimAuthorizerSignature;
  if (signature !== undefined) return claimRows(hosted, permitted, { rows, signature });
  const parts = await divideClaim(permitted.network, rows);
  return joinAnswers(
    await Promise.all(parts.map((part) => claimRows(hosted, permitted, { rows: part, signature }))),
  );
}

/** Claims rows in one transaction. */
async function claimRows(
  hosted: HostedContext,
  permitted: Permit,
  { rows, signature }: { rows: readonly CallerRow[]; signature: Hex | undefined },
): Promise<ChannelCallAnswer> {
  const { network } = permitted;
  const parts = rows.flatMap(({ channelId, voucher, totalClaimed }) => [
    channelId,
    voucher.ceiling,
    totalClaimed,
  ]);
  const id = callIdOf("claim", parts);
  const begun = await hosted.turns.run(id, () => begin(hosted, permitted, { id, signature, rows }));
  if ("state" in begun) return begun;
  const key = { ...network.escrow.place, id };
  const call = await followCall(hosted, permitted, key, evidenceOf(network, rows));
  return answerOf(call, begun.doubts);
}

/** A claim under way. */
interface Sent {
  /** Names rows that the first node has refused, and another one passed. */
  doubts?: string | undefined;
}

/** Decides, and sends. One request of a call in this process at a time. */
async function begin(
  hosted: HostedContext,
  permitted: Permit,
  { id, signature, rows }: { id: Hex; signature: Hex | undefined; rows: readonly CallerRow[] },
): Promise<ChannelCallAnswer | Sent> {
  const { network, caller } = permitted;
  const { context, place } = network.escrow;
  const known = await readCall(context.ledger, { ...place, id });
  if (known?.state === "sent") return {};
  const [first] = rows;
  const receiverAuthorizer = first?.config.receiverAuthorizer;
  if (!receiverAuthorizer) return refuse("invalid_payload");
  if (rows.some(({ config }) => config.receiverAuthorizer !== receiverAuthorizer)) {
    return refuse("invalid_batch_settlement_evm_receiver_authorizer_mismatch");
  }
  const digest = digestOf(network, rows);
  const authorized = authorize(hosted, { receiverAuthorizer, signature, digest });
  if ("reason" in authorized) return refuse(authorized.reason);
  const unpaid = await findUnpaid(network, rows, known);
  if (!("rows" in unpaid)) return unpaid;
  const gas = gasOfClaims(unpaid.rows);
  const data = encodeClaim(unpaid.rows, longSignature);
  await requireGas(hosted, permitted, { data, gas, isByBuyer: false });
  const { passed, refused, doubted } = await withTrial({ ...hosted, caller }, async () => {
    const initial = await tryClaims(network.escrow, unpaid.rows);
    // A row that endpoints differ about spoils no others: they are claimed before.
    const isInVain = initial.passed.length === 0 || signature !== undefined;
    const last = isInVain ? await tryElsewhere(network.escrow, initial) : initial;
    const doubted = initial.refused.filter(({ candidate }) => last.passed.includes(candidate));
    return { isVain: last.refused.length > 0, result: { ...last, doubted } };
  });
  const leftOut = describe("Not to be claimed", refused);
  if (leftOut !== undefined) countRefused(network, refused.length);
  const isSigned = signature !== undefined;
  if (passed.length === 0 || (isSigned && leftOut !== undefined)) {
    return { state: "refused", reason: refusedRows, message: leftOut?.slice(0, maxMessage) };
  }
  const sent = isSigned ? rows : passed;
  const signed = await signBy(authorized, isSigned ? digest : digestOf(network, sent));
  await sendCall(hosted, permitted, {
    id,
    kind: "claim",
    subject: id,
    data: encodeClaim(sent, signed),
    gas: gasOfClaims(sent),
    isUrgent: unpaid.isUrgent,
    leftOut,
    replaces: known?.transactionId,
  });
  return { doubts: describe("Refused by a node", doubted) };
}

function refuse(reason: Extract<ChannelCallAnswer, { state: "refused" }>["reason"]) {
  return { state: "refused", reason } as const;
}

/**
 * Rows that the chain has not paid; where it has paid all, the answer. A call that was done is
 * asked of the chain again: a reorganisation may have taken it away.
 */
async function findUnpaid(
  network: HostedNetwork,
  rows: readonly CallerRow[],
  known: CallerCall | undefined,
): Promise<{ rows: CallerRow[]; isUrgent: boolean } | ChannelCallAnswer> {
  const ids = rows.map(({ channelId }) => channelId);
  const readings = await readAll(network, ids, await readHead(network));
  const paid = rows.filter((row, index) => isPaid(row, readings[index]));
  const votes = await readVotes(network, paid, known);
  const unpaid = rows.filter((row) => {
    const ofRow = votes.get(row.channelId);
    const isDisputed = ofRow !== undefined && !isUnanimous(ofRow, (each) => isPaid(row, each));
    return isDisputed || !paid.includes(row);
  });
  const isUrgent = rows.some((row, index) =>
    [readings[index], ...(votes.get(row.channelId)?.readings ?? [])].some(
      (each) => each !== undefined && !isPaid(row, each) && takesOf(each, row),
    ),
  );
  if (unpaid.length > 0) return { rows: unpaid, isUrgent };
  const served = await readServed(network, sumOfClaims(rows));
  const deep = served && (await readAll(network, ids, served));
  const transaction = known?.state === "done" ? known.hash : undefined;
  const isDone = deep !== undefined && rows.every((row, index) => isPaid(row, deep[index]));
  return isDone ? { state: "done", transaction } : { state: "pending", transaction };
}

/**
 * Channels of rows that one node shows as paid, as each endpoint has them. That node may hold up a
 * claim until the payer's withdrawal ends. A claim that is paid already costs its gas alone. So
 * rows that this call has claimed just now are not asked for: a request is repeated without cost.
 */
async function readVotes(
  { escrow }: HostedNetwork,
  paid: readonly CallerRow[],
  known: CallerCall | undefined,
): Promise<ReadonlyMap<Hex, ChannelVotes>> {
  const { context, settlement } = escrow;
  // With one endpoint, its word decides.
  if (settlement.network.rpc.endpoints.length < 2) return new Map();
  const isRecent =
    known?.state === "done" && Math.abs(context.ledger.now() - known.createdAt) < recentMs;
  const wasSent = ({ channelId }: CallerRow) => isRecent && !known.leftOut?.includes(channelId);
  const asked = paid.filter((row) => !wasSent(row)).map(({ channelId }) => channelId);
  return readByEach(escrow, { ids: [...new Set(asked)] });
}

function isPaid({ totalClaimed }: CallerRow, reading: ChannelReading | undefined): boolean {
  return reading !== undefined && reading.totalClaimed >= totalClaimed;
}

/** All that the rows claim, at most. */
function sumOfClaims(rows: readonly CallerRow[]): bigint {
  return rows.reduce((sum, { totalClaimed }) => sum + totalClaimed, 0n);
}

/** The escrow has paid every row that was sent, in a block that is deep enough. */
function evidenceOf(network: HostedNetwork, rows: readonly CallerRow[]): Evidence {
  return {
    value: sumOfClaims(rows),
    async readOutcome(receipt, served, { leftOut = "" }) {
      if (!receipt.isSuccess) return undefined;
      const sent = rows.filter(({ channelId }) => !leftOut.includes(channelId));
      const ids = sent.map(({ channelId }) => channelId);
      const readings = await readAll(network, ids, served);
      return sent.every((row, index) => isPaid(row, readings[index])) ? {} : undefined;
    },
  };
}

function answerOf(call: CallerCall | undefined, doubts: string | undefined): ChannelCallAnswer {
  const transaction = call?.hash;
  if (call === undefined || call.state === "sent") return { state: "pending", transaction };
  if (call.state === "failed") {
    const reason = "invalid_batch_settlement_evm_claim_transaction_failed";
    const message = doubts?.slice(0, maxMessage);
    return { state: "refused", reason, message, transaction };
  }
  if (call.leftOut === undefined) return { state: "done", transaction };
  const message = call.leftOut.slice(0, maxMessage);
  return { state: "refused", reason: refusedRows, message, transaction };
}

/** Names refused rows, if any, by the escrow's errors. A node's own words stay here. */
function describe(head: string, refused: readonly RefusedRow<CallerRow>[]): string | undefined {
  if (refused.length === 0) return undefined;
  const words = refused.map(({ candidate, error }) => {
    const name = /^[A-Z][A-Za-z]+$/.test(error) ? error : "refused";
    return `${candidate.channelId} ${name}`;
  });
  return `${head}: ${words.join(", ")}`;
}

function countRefused({ escrow: { metrics, place } }: HostedNetwork, rows: number): void {
  metrics.callerCalls.inc({ network: place.network, kind: "claim", outcome: "refused" }, rows);
}
