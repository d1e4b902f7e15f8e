import { getChainPreset } from "@coinslot/chain";
import { type Address, type Hash, type Hex, slice, type TransactionReceipt } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { askChain } from "../chains/ask-chain.ts";
import { contractKinds } from "../chains/bridge-chain.ts";
import type { SourceChain } from "../chains/source-chain.ts";
import { type ChainNode, requireWitnesses } from "../chains/witnesses.ts";
import { readPeer } from "../quote/read-peer.ts";
import {
  describeWhereabouts,
  type InFlight,
  type TrackedProgress,
} from "../send/transfer-progress.ts";
import { isArrived } from "./confirm-arrival.ts";
import { isDeparted } from "./confirm-departure.ts";
import { findBlockBefore } from "./find-block.ts";
import { createDeliveryFinder, type DeliveryFinder } from "./find-delivery.ts";
import { findSent, type SentTransfer } from "./find-sent.ts";
import { readReceipt } from "./read-receipt.ts";

/**
 * Clock skew between chains: the earliest time at which a message can seem to arrive before it was
 * sent.
 */
const clockToleranceSeconds = 600n;

interface Watch {
  guid: Hex;
  /** Of the source contract on the target chain, in 32 bytes. */
  peer: Hex;
  /** Of the target chain, as the nodes are. */
  contract: Address;
  nodes: readonly ChainNode[];
  finder: DeliveryFinder;
  confirmations: number;
}

/**
 * Returns a function that reads a transfer's progress from both chains. It remembers only the
 * searched range.
 *
 * It throws BridgeError `send_reverted`, `outcome_unclear`, `not_a_transfer`,
 * `target_not_watchable`, `rpc_unavailable`.
 */
export function createTransferReader(
  context: Pick<BridgeContext, "chains" | "connections">,
  options: {
    source: SourceChain;
    hash: Hash;
    /** The contract it was sent through, if it is none of the table. */
    contract: Address | undefined;
    confirmations: number | undefined;
    /** Returns whether a long search is to go on. */
    isWanted: () => boolean;
  },
): () => Promise<TrackedProgress> {
  const { chains, connections } = context;
  const { source, hash, contract, isWanted } = options;
  const table = contractKinds.flatMap((kind) => source.chain.contracts[kind] ?? []);
  const contracts = contract === undefined ? table : [contract];
  let watch: Watch | undefined;

  async function watchFor(sent: SentTransfer, inFlight: InFlight): Promise<Watch> {
    const { guid, dstEid } = sent;
    const target = chains.byEid(dstEid);
    const connection = target?.type === "evm" ? connections.target(target) : undefined;
    if (target?.type !== "evm" || connection === undefined) throw notWatchable(inFlight);
    const { client, nodes } = connection;
    const { depth } = getChainPreset(target.chainId).finality;
    const confirmations = options.confirmations ?? depth;
    const block = await askChain(
      "a block of the source chain",
      source.client.getBlock({ blockNumber: inFlight.sourceBlock }),
    );
    const fromBlock = await findBlockBefore(client, block.timestamp - clockToleranceSeconds);
    const rescan = BigInt(Math.max(confirmations, depth));
    const peer = await readPeer(source.client, { contract: sent.contract, eid: dstEid });
    const contract = slice(peer, 12);
    const finder = createDeliveryFinder({
      client,
      contract,
      guid,
      fromBlock,
      rescan,
      isWanted,
    });
    return { guid, peer, contract, nodes, finder, confirmations };
  }

  return async function readTransfer() {
    const receipt = await readReceipt(source.client, hash);
    if (receipt === undefined) return { state: "pending", hash };
    const sent = await requireSent(source, receipt, contracts);
    const departure = {
      hash,
      guid: sent.guid,
      sourceChain: source.chain.key,
      targetChain: chains.byEid(sent.dstEid)?.key ?? `endpoint ${sent.dstEid}`,
      sourceBlock: receipt.blockNumber,
      amountSent: sent.amountSent,
    };
    const inFlight: InFlight = { state: "in_flight", ...departure, searchedTo: undefined };
    // After a reorganisation, the same transaction may send another message.
    if (watch?.guid !== sent.guid) watch = await watchFor(sent, inFlight);
    const { guid, peer, contract, nodes, finder, confirmations } = watch;
    const delivery = await finder.find();
    if (delivery === undefined) return { ...inFlight, searchedTo: finder.head() };
    const { sourceBlock } = departure;
    const isDelivered =
      delivery.confirmations >= confirmations &&
      (await isDeparted(source.nodes, { hash, contracts, sent, sourceBlock, peer })) &&
      (await isArrived(nodes, { delivery, contract, guid, confirmations }));
    return { state: isDelivered ? "delivered" : "received", ...departure, ...delivery };
  };
}

/**
 * The transfer that a transaction has sent. One that reverted or has sent nothing invites another,
 * so every node has to report that. A revert needs two hosts at least.
 *
 * @throws BridgeError `send_reverted`, `not_a_transfer`, `outcome_unclear`, `rpc_unavailable`
 */
async function requireSent(
  { nodes }: SourceChain,
  receipt: TransactionReceipt,
  contracts: readonly Address[],
): Promise<SentTransfer> {
  const found = trySent(receipt, contracts);
  if (!(found instanceof BridgeError)) return found;
  const hash = receipt.transactionHash;
  if (found.code === "send_reverted") {
    requireWitnesses(nodes, { claim: `The transaction ${hash} reverted`, hash });
  }
  const receipts = await Promise.all(nodes.map(({ client }) => readReceipt(client, hash)));
  const agrees = (each: TransactionReceipt | undefined) => {
    const other = each && trySent(each, contracts);
    return other instanceof BridgeError && other.code === found.code;
  };
  if (receipts.every(agrees)) throw found;
  const state = found.code === "send_reverted" ? "reverted" : "sending no transfer";
  throw new BridgeError("rpc_unavailable", `Not every RPC endpoint reports ${hash} as ${state}`);
}

function trySent(
  receipt: TransactionReceipt,
  contracts: readonly Address[],
): SentTransfer | BridgeError {
  try {
    return findSent(receipt, contracts);
  } catch (error) {
    if (error instanceof BridgeError) return error;
    throw error;
  }
}

function notWatchable(inFlight: InFlight): BridgeError {
  const { hash, targetChain } = inFlight;
  const text = `${targetChain} cannot be watched: targetRpcUrls has no URL for it, or it is outside the EVM. ${describeWhereabouts(inFlight)}`;
  return new BridgeError("target_not_watchable", text, { hash, progress: inFlight });
}
