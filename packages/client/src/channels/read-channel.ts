import {
  chainIdOf,
  channelContracts,
  channelDomain,
  channelSettlementAbi,
  depositNonce,
  eip3009Abi,
  type Hex,
  isSameAddress,
  type Network,
} from "@coinslot/protocol";
import type { ChainNode } from "../chain/chain-node.ts";
import { type ChannelRecord, larger, smaller } from "./channel-record.ts";

/** A channel in the newest block of one endpoint. */
export interface ChannelOnChain {
  /** Unix seconds of the block. */
  time: number;
  balance: bigint;
  claimed: bigint;
  /** A timed withdrawal that is begun and not finished. */
  withdrawal: { amount: bigint; initiatedAt: number } | undefined;
  /** True if the authorization of the open deposit is used, or cancelled. */
  isDepositUsed: boolean;
}

const escrow = { address: channelContracts.settlement, abi: channelSettlementAbi } as const;

/**
 * Reads a channel, all of it at one block of one endpoint.
 *
 * @returns `undefined` when no endpoint returned it
 */
export async function readChannel(
  nodes: readonly ChainNode[],
  { id, config, deposit }: Pick<ChannelRecord, "id" | "config" | "deposit">,
): Promise<ChannelOnChain | undefined> {
  const args = [id] as const;
  return askFirst(nodes, (node) =>
    node.ask(async (client) => {
      const { number: blockNumber, timestamp } = await client.getBlock();
      const at = { ...escrow, blockNumber };
      const [[balance, claimed], [amount, initiatedAt], isDepositUsed] = await Promise.all([
        client.readContract({ ...at, functionName: "channels", args }),
        client.readContract({ ...at, functionName: "pendingWithdrawals", args }),
        deposit === undefined
          ? false
          : client.readContract({
              address: config.token,
              abi: eip3009Abi,
              functionName: "authorizationState",
              args: [config.payer, depositNonce({ channelId: id, salt: deposit.salt })],
              blockNumber,
            }),
      ]);
      const withdrawal = initiatedAt === 0 ? undefined : { amount, initiatedAt };
      return { time: Number(timestamp), balance, claimed, withdrawal, isDepositUsed };
    }),
  );
}

/** The channel by each endpoint that returned it. */
export async function readByAll(
  nodes: readonly ChainNode[],
  channel: Parameters<typeof readChannel>[1],
): Promise<ChannelOnChain[]> {
  const seen = await Promise.all(nodes.map((node) => readChannel([node], channel)));
  return seen.filter((chain) => chain !== undefined);
}

/** The highest balance of several endpoints, and the lowest claimed sum. */
export function agreedSums(
  all: readonly ChannelOnChain[],
): Pick<ChannelOnChain, "balance" | "claimed"> {
  const [first, ...others] = all;
  if (first === undefined) return { balance: 0n, claimed: 0n };
  return others.reduce<Pick<ChannelOnChain, "balance" | "claimed">>(
    (sums, { balance, claimed }) => ({
      balance: larger(balance, sums.balance),
      claimed: smaller(claimed, sums.claimed),
    }),
    first,
  );
}

/**
 * Returns whether a network has the escrow and its collector at the addresses that are signed for;
 * `undefined` when no endpoint returned it.
 */
export async function hasEscrow(
  nodes: readonly ChainNode[],
  network: Network,
): Promise<boolean | undefined> {
  return askFirst(nodes, (node) =>
    node.ask(async (client) => {
      const [code, collector] = await Promise.all([
        client.getCode({ address: channelContracts.settlement }),
        client.getCode({ address: channelContracts.erc3009Collector }),
      ]);
      if (isEmpty(code) || isEmpty(collector)) return false;
      const domain = await client.readContract({ ...escrow, functionName: "eip712Domain" });
      const [, name, version, chainId, verifyingContract] = domain;
      return (
        name === channelDomain.name &&
        version === channelDomain.version &&
        chainId === BigInt(chainIdOf(network)) &&
        isSameAddress(verifyingContract, channelContracts.settlement)
      );
    }),
  );
}

function isEmpty(code: Hex | undefined): boolean {
  return code === undefined || code === "0x";
}

async function askFirst<T>(
  nodes: readonly ChainNode[],
  ask: (node: ChainNode) => Promise<T>,
): Promise<T | undefined> {
  for (const node of nodes) {
    try {
      return await ask(node);
    } catch {
      // Failover to the next endpoint.
    }
  }
  return undefined;
}
