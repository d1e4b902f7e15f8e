import type { Hex } from "@coinslot/protocol";
import type { OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import type { EscrowContext } from "../channels-context.ts";
import { type FormerHeads, finalByHeads } from "../watch/final-by-heads.ts";
import { isStateMissing } from "../watch/read-channels.ts";
import { isNonceUsed, type TimedBlock } from "./deposit-evidence.ts";

interface Look {
  head: number;
  /** The block so many below the head. */
  blockAt(depth: number): Promise<TimedBlock | undefined>;
}

/** By their nonces, blocks in which authorizations were seen as used. */
const formerUses = new WeakMap<SettlementNetwork, FormerHeads<{ block: TimedBlock }>>();

/**
 * Whether an authorization that is used at `served` is so at `finalAfter`, too. A node may keep too
 * few states for that: see `finalByHeads`.
 *
 * @throws RpcError, ZodError
 */
export async function isUsedFinally(
  { settlement: { network } }: EscrowContext,
  deposit: OpenDeposit,
  { served, look }: { served: TimedBlock; look: Look },
): Promise<boolean> {
  const final = look.head < network.finalAfter ? undefined : await look.blockAt(network.finalAfter);
  if (final === undefined) return false;
  if (final.number > served.number) return true;
  try {
    return (await isNonceUsed(network.rpc, deposit, final)) === true;
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    const readings = {
      atHead: new Map([[deposit.nonce, { block: served }]]),
      head: { number: look.head },
    };
    return (await finalByHeads(network, usesOf(network), readings)).has(deposit.nonce);
  }
}

/** Forgets what was seen of deposits that are no longer open. */
export function forgetUses(network: SettlementNetwork, open: readonly OpenDeposit[]): void {
  const nonces = new Set<Hex>(open.map(({ nonce }) => nonce));
  const uses = usesOf(network);
  for (const nonce of uses.keys()) if (!nonces.has(nonce)) uses.delete(nonce);
}

function usesOf(network: SettlementNetwork): FormerHeads<{ block: TimedBlock }> {
  const uses = formerUses.get(network) ?? new Map();
  formerUses.set(network, uses);
  return uses;
}
