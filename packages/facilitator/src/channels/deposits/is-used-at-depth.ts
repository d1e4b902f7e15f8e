import type { OpenDeposit } from "../../ledger/channels/channel-deposits.ts";
import type { SettlementNetwork } from "../../settle/context.ts";
import type { EscrowContext } from "../channels-context.ts";
import { isStateMissing } from "../watch/read-channels.ts";
import { isNonceUsed, type TimedBlock } from "./deposit-evidence.ts";

/** One look at the chain. */
export interface DepthLook {
  head: number;
  /** The block so many below the head. */
  blockAt(depth: number): Promise<TimedBlock | undefined>;
}

/** Of a network. The oldest is forgotten first: its use is seen as deep later. */
const maxUses = 10_000;

/** The first blocks in which authorizations were seen as used, by their identities. */
const firstUses = new WeakMap<SettlementNetwork, Map<string, TimedBlock>>();

/**
 * Whether an authorization is used or cancelled at a depth. A node may keep too few states for
 * that. Then it is, once a former head that had it used is as deep, and still in the chain.
 *
 * @throws RpcError, ZodError
 */
export async function isUsedAtDepth(
  { settlement: { network } }: EscrowContext,
  deposit: OpenDeposit,
  { depth, look }: { depth: number; look: DepthLook },
): Promise<boolean> {
  const block = look.head < depth ? undefined : await look.blockAt(depth);
  if (block === undefined) return false;
  try {
    return (await isNonceUsed(network.rpc, deposit, block)) === true;
  } catch (error) {
    if (!isStateMissing(error)) throw error;
    const first = await findFirstUse(network, deposit, look);
    return first !== undefined && first.number <= block.number;
  }
}

/** Never a later block than before, unless that one has left the chain. */
async function findFirstUse(
  network: SettlementNetwork,
  deposit: OpenDeposit,
  look: DepthLook,
): Promise<TimedBlock | undefined> {
  const uses = firstUses.get(network) ?? new Map<string, TimedBlock>();
  firstUses.set(network, uses);
  const id = `${deposit.token}/${deposit.payer}/${deposit.nonce}`;
  const known = uses.get(id);
  const now = known && (await look.blockAt(look.head - known.number));
  uses.delete(id);
  let first = now?.hash === known?.hash ? known : undefined;
  if (first === undefined) {
    const head = await look.blockAt(0);
    if (head === undefined || !(await isNonceUsed(network.rpc, deposit, head))) return undefined;
    first = head;
  }
  uses.set(id, first);
  const [oldest] = uses.keys();
  if (uses.size > maxUses && oldest !== undefined) uses.delete(oldest);
  return first;
}
