import {
  type ChannelOffer,
  DecodeError,
  decodePaymentRequired,
  headerName,
  type OfferedRequirements,
  readChannelOffer,
} from "@coinslot/protocol";
import { bookExposureOf, type ChannelLedger, learnCharged, lookAtChain } from "./channel-ledger.ts";
import { type ChannelRecord, larger } from "./channel-record.ts";
import { checkCorrection } from "./check-correction.ts";
import type { ChannelCandidate } from "./choose-channel.ts";

/**
 * Consequence of a 402 to a voucher.
 *
 * - `again`: something was learnt; the next voucher may differ.
 * - `busy`: another request of the channel runs; the same voucher is worth another attempt.
 * - `final`: the seller has decided, or its correction is not believed.
 */
export type Verdict =
  | { kind: "again"; record: ChannelRecord }
  | { kind: "busy" }
  | { kind: "final"; record: ChannelRecord; why?: string };

const busyReason = "invalid_batch_settlement_evm_channel_busy";

/** Judges a 402 to a voucher by the own chain, the own store and the own signature. */
export async function judgeRejection(
  ledger: ChannelLedger,
  options: {
    response: Response;
    reason: string | undefined;
    candidate: ChannelCandidate;
    record: ChannelRecord;
  },
): Promise<Verdict> {
  const { response, reason, candidate, record } = options;
  if (reason === busyReason) return { kind: "busy" };
  const seen = await lookAtChain(ledger, record);
  if (seen === undefined) return { kind: "final", record, why: "no endpoint returned the channel" };
  const { chain } = seen;
  const known = seen.record;
  if (chain.withdrawal !== undefined) {
    return { kind: "final", record: known, why: "a withdrawal has begun" };
  }
  const correction = readCorrection(response, candidate, record);
  if (correction !== undefined) {
    const { claimed } = chain;
    const accepted = candidate.channel;
    const proven = await checkCorrection({ correction, accepted, record: known, claimed });
    if (typeof proven === "string") return { kind: "final", record: known, why: proven };
    return learn(ledger, { candidate, record: known, ...proven });
  }
  // The contract pays a voucher's own signer's ceilings alone: what is claimed was signed.
  if (chain.claimed > known.charged) {
    const { claimed } = chain;
    const ceiling = larger(known.ceiling, claimed);
    return learn(ledger, { candidate, record: known, charged: claimed, ceiling });
  }
  if (record.deposit !== undefined && known.deposit === undefined) {
    return { kind: "again", record: known };
  }
  if (known.deposit?.isReported) {
    // The seller reported a deposit that the chain does not show: it goes along once more.
    const deposit = { ...known.deposit, isReported: false };
    const after = ledger.store.update(known.id, (stored) => ({ ...stored, deposit }));
    return { kind: "again", record: { ...after, balance: known.balance } };
  }
  const isUnchanged = known.balance === record.balance;
  return isUnchanged ? { kind: "final", record: known } : { kind: "again", record: known };
}

/**
 * The entry of a corrective 402 that has the state of this channel. It is in the header, as all of
 * version 2: the body of a hostile seller may never end.
 */
function readCorrection(
  response: Response,
  { channel }: ChannelCandidate,
  { network }: ChannelRecord,
): ChannelOffer | undefined {
  for (const { requirements } of readHeader(response)) {
    if (requirements.network !== network) continue;
    const corrected = readChannelOffer(requirements);
    const isSame = corrected?.token === channel.token && corrected.receiver === channel.receiver;
    if (isSame && corrected.channelState !== undefined) return corrected;
  }
  return undefined;
}

function readHeader({ headers }: Response): OfferedRequirements[] {
  try {
    return decodePaymentRequired(headers.get(headerName.paymentRequired) ?? "").accepts;
  } catch (error) {
    if (error instanceof DecodeError) return [];
    throw error;
  }
}

/** Books and stores a proven ceiling, then takes over the charged sum. */
async function learn(
  ledger: ChannelLedger,
  known: { candidate: ChannelCandidate; record: ChannelRecord; charged: bigint; ceiling: bigint },
): Promise<Verdict> {
  const { candidate, charged, ceiling } = known;
  let { record } = known;
  if (ceiling > record.ceiling) {
    const next = { ...record, ceiling };
    const booking = { next, ceiling: record.ceiling, asset: candidate.asset };
    const why = await bookExposureOf(ledger, booking);
    if (why !== undefined) return { kind: "final", record, why };
    record = ledger.store.update(record.id, (stored) => ({
      ...stored,
      ceiling: larger(stored.ceiling, ceiling),
    }));
  }
  const isKnown = charged === record.charged;
  const { balance } = known.record;
  record = { ...(await learnCharged(ledger, record, charged)), balance };
  return isKnown ? { kind: "final", record } : { kind: "again", record };
}
