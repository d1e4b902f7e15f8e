import { getChainPreset } from "@coinslot/chain";
import { type Address, type Hash, type PublicClient, slice } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { askChain } from "../chains/ask-chain.ts";
import { contractKinds } from "../chains/bridge-chain.ts";
import type { SourceChain } from "../chains/source-chain.ts";
import { readPeer } from "../quote/read-peer.ts";
import {
  describeWhereabouts,
  type InFlight,
  type TrackedProgress,
} from "../send/transfer-progress.ts";
import { findBlockBefore } from "./find-block.ts";
import { createDeliveryFinder, type DeliveryFinder } from "./find-delivery.ts";
import { findSent, type SentTransfer } from "./find-sent.ts";
import { readReceipt } from "./read-receipt.ts";

/** Clocks of chains differ; a message does not arrive by so much earlier than it was sent. */
const clockToleranceSeconds = 600n;

interface Watch {
  guid: string;
  finder: DeliveryFinder;
  confirmations: number;
}

/**
 * Returns a function that reads from both chains how far a transfer is now. It remembers only where it has looked.
 *
 * It throws BridgeError `send_reverted`, `not_a_transfer`, `target_not_watchable`, `rpc_unavailable`.
 */
export function createTransferReader(
  context: Pick<BridgeContext, "chains" | "connections">,
  options: {
    source: SourceChain;
    hash: Hash;
    /** The contract it was sent through, if it is none of the table. */
    contract: Address | undefined;
    confirmations: number | undefined;
    /** Whether a long search is to go on. */
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
    const client = target?.type === "evm" ? connections.target(target) : undefined;
    if (target?.type !== "evm" || client === undefined) throw notWatchable(inFlight);
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
    return { guid, finder, confirmations };
  }

  return async function readTransfer() {
    const receipt = await readReceipt(source.client, hash);
    if (receipt === undefined) return { state: "pending", hash };
    if (receipt.status === "reverted") await requireAgreement(source.nodes, hash);
    const sent = findSent(receipt, contracts);
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
    const { finder, confirmations } = watch;
    const delivery = await finder.find();
    if (delivery === undefined) return { ...inFlight, searchedTo: finder.head() };
    const state = delivery.confirmations >= confirmations ? "delivered" : "received";
    return { state, ...departure, ...delivery };
  };
}

/** That a transfer has moved nothing invites another one: every node has to say so. */
async function requireAgreement(nodes: readonly PublicClient[], hash: Hash): Promise<void> {
  const receipts = await Promise.all(nodes.map((node) => readReceipt(node, hash)));
  if (receipts.every((receipt) => receipt?.status === "reverted")) return;
  const text = `Not every RPC endpoint says that ${hash} reverted`;
  throw new BridgeError("rpc_unavailable", text);
}

function notWatchable(inFlight: InFlight): BridgeError {
  const { hash, targetChain } = inFlight;
  const text = `${targetChain} cannot be watched: targetRpcUrls has no URL for it, or it is no EVM chain. ${describeWhereabouts(inFlight)}`;
  return new BridgeError("target_not_watchable", text, { hash, progress: inFlight });
}
