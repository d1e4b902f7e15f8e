import type { Devnet } from "@coinslot/devnet";
import { channelContracts, channelSettlementAbi, type Hex, toLowerHex } from "@coinslot/protocol";
import { type Log, type PublicClient, parseEventLogs } from "viem";

/** A channel on the canonical chain. Amounts are in the token's smallest unit. */
export interface RecordedChannel {
  balance: bigint;
  totalClaimed: bigint;
  /** Amounts, in their order. */
  deposits: bigint[];
  refunds: bigint[];
  withdrawals: RecordedWithdrawal[];
  claims: { totalClaimed: bigint; time: number }[];
}

export interface RecordedWithdrawal {
  amount: bigint;
  /** Of the channel when it began. */
  balance: bigint;
  totalClaimed: bigint;
  /** Unix seconds of the chain. */
  finalizeAfter: number;
}

/** The escrow's part of the canonical chain, read from the node itself. */
export interface EscrowRecord {
  channels: ReadonlyMap<Hex, RecordedChannel>;
  /** Claimed of all channels; sent to the seller by the escrow; arrived there. */
  claimed: bigint;
  settled: bigint;
  arrived: bigint;
  transactions: number;
  nonce: number;
  waiting: number;
}

/** Reads the whole chain. */
export async function readEscrow(devnet: Devnet): Promise<EscrowRecord> {
  const { client, accounts, token } = devnet;
  const { settlement: address } = channelContracts;
  const logs = await client.getLogs({ address, fromBlock: 0n, toBlock: "latest" });
  const times = await readTimes(client, logs);
  const channels = new Map<Hex, RecordedChannel>();
  let [claimed, settled] = [0n, 0n];
  const transactions = new Set<Hex>();
  for (const event of parseEventLogs({ abi: channelSettlementAbi, logs })) {
    if (event.eventName === "Settled") settled += event.args.amount;
    if (!("channelId" in event.args)) continue;
    const id = toLowerHex(event.args.channelId);
    const channel = channels.get(id) ?? {
      ...{ balance: 0n, totalClaimed: 0n, deposits: [], refunds: [], withdrawals: [], claims: [] },
    };
    channels.set(id, channel);
    switch (event.eventName) {
      case "Deposited":
        channel.balance = event.args.newBalance;
        channel.deposits.push(event.args.amount);
        break;
      case "Claimed":
        channel.totalClaimed = event.args.newTotalClaimed;
        claimed += event.args.claimAmount;
        channel.claims.push({
          totalClaimed: event.args.newTotalClaimed,
          time: times.get(event.blockNumber) ?? 0,
        });
        transactions.add(event.transactionHash);
        break;
      case "WithdrawInitiated": {
        const { amount, finalizeAfter } = event.args;
        const { balance, totalClaimed } = channel;
        channel.withdrawals.push({ amount, balance, totalClaimed, finalizeAfter });
        break;
      }
      case "Refunded":
        channel.refunds.push(event.args.amount);
        channel.balance -= event.args.amount;
        break;
      case "WithdrawFinalized":
        channel.balance -= event.args.amount;
    }
  }
  const [nonce, pool, arrived] = await Promise.all([
    client.getTransactionCount({ address: accounts.relayer.address }),
    client.getTxpoolStatus(),
    client.readContract({
      address: token,
      abi: balanceAbi,
      functionName: "balanceOf",
      args: [accounts.seller.address],
    }),
  ]);
  return {
    ...{ channels, claimed, settled, arrived, transactions: transactions.size, nonce },
    waiting: pool.pending + pool.queued,
  };
}

const balanceAbi = [
  {
    type: "function",
    name: "balanceOf",
    stateMutability: "view",
    inputs: [{ name: "account", type: "address" }],
    outputs: [{ name: "", type: "uint256" }],
  },
] as const;

async function readTimes(
  client: Pick<PublicClient, "getBlock">,
  logs: readonly Log[],
): Promise<Map<bigint, number>> {
  const numbers = new Set(logs.flatMap(({ blockNumber }) => blockNumber ?? []));
  const blocks = await Promise.all(
    [...numbers].map(async (blockNumber) => {
      const { timestamp } = await client.getBlock({ blockNumber });
      return [blockNumber, Number(timestamp)] as const;
    }),
  );
  return new Map(blocks);
}
