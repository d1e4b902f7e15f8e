import type { RpcRequester } from "@coinslot/chain";
import type { DepositKey } from "../../ledger/channels/channel-deposits.ts";
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

interface Network {
  rpc: RpcRequester;
}

/** The first blocks in which authorizations were seen as used, by their identities. */
const firstUses = new WeakMap<Network, Map<string, TimedBlock>>();

/**
 * Whether an authorization is used or cancelled at a depth. A node may keep too few states for
 * that. Then it is, once a former head that had it used is as deep, and still in the chain.
 *
 * @throws RpcError, ZodError
 */
export async function isUsedAtDepth(
  { settlement: { network } }: { settlement: { network: Network } },
  deposit: DepositKey,
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

/**
 * Never a later block than before. But that one is forgotten where it has left the chain, or where
 * the head does not show the use: a node may have shown one that never was.
 */
async function findFirstUse(
  network: Network,
  deposit: DepositKey,
  look: DepthLook,
): Promise<TimedBlock | undefined> {
  const uses = firstUses.get(network) ?? new Map<string, TimedBlock>();
  firstUses.set(network, uses);
  const id = `${deposit.token}/${deposit.payer}/${deposit.nonce}`;
  const head = await look.blockAt(0);
  if (head === undefined) return undefined;
  const known = uses.get(id);
  const now = known && (await look.blockAt(look.head - known.number));
  const former = now?.hash === known?.hash ? known : undefined;
  let isUsed: boolean | undefined;
  try {
    isUsed = await isNonceUsed(network.rpc, deposit, head);
  } catch (error) {
    // Blocks may have come since the look began. That says nothing against a former one.
    if (former === undefined || !isStateMissing(error)) throw error;
    isUsed = true;
  }
  uses.delete(id);
  if (isUsed !== true) return undefined;
  const first = former ?? head;
  uses.set(id, first);
  const [oldest] = uses.keys();
  if (uses.size > maxUses && oldest !== undefined) uses.delete(oldest);
  return first;
}
