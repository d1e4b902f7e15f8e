import type { ChannelFixture, DevAccount, Devnet } from "@coinslot/devnet";
import {
  type ChannelConfig,
  channelContracts,
  channelSettlementAbi,
  type Hex,
} from "@coinslot/protocol";
import { encodeFunctionData, parseEventLogs, parseGwei } from "viem";

/** A deposit with the collector's data, which holds its payer's signature. */
interface SignedDeposit {
  amount: bigint;
  data: Hex;
}

function encodeDeposit(config: ChannelConfig, { amount, data }: SignedDeposit): Hex {
  const args = [config, amount, channelContracts.erc3009Collector, data] as const;
  return encodeFunctionData({ abi: channelSettlementAbi, functionName: "deposit", args });
}

/** Acts of payers and receivers on many channels at once, or before all else in a block. */
export function createChannelActs(devnet: Devnet, channels: ChannelFixture) {
  /** Deposits on many channels, in one transaction. */
  async function depositAll(configs: readonly ChannelConfig[], amount: bigint) {
    const calls = await Promise.all(
      configs.map(async (config) => {
        const data = await channels.signDeposit(config, amount);
        const args = [config, amount, channelContracts.erc3009Collector, data] as const;
        return encodeFunctionData({ abi: channelSettlementAbi, functionName: "deposit", args });
      }),
    );
    // In parts: a block has room for some hundred.
    for (let from = 0; from < calls.length; from += 50) {
      await channels.multicall(calls.slice(from, from + 50));
    }
  }

  /** Begins the withdrawals of many channels in one block. */
  function withdrawAll(configs: readonly ChannelConfig[], amount: bigint) {
    const calls = configs.map(
      (config): Hex =>
        encodeFunctionData({
          abi: channelSettlementAbi,
          functionName: "initiateWithdraw",
          args: [config, amount],
        }),
    );
    return channels.multicall(calls, devnet.accounts.buyer);
  }

  /** Sends a call of the escrow that its block has before all others, and does not wait for it. */
  function sendFirst(account: DevAccount, data: Hex) {
    const fees = { maxFeePerGas: parseGwei("500"), maxPriorityFeePerGas: parseGwei("200") };
    const { settlement: to } = channelContracts;
    return devnet.client.sendTransaction({ account, to, data, gas: 500_000n, ...fees });
  }

  /** A stranger executes a deposit, before all else in its block. */
  function sendDepositFirst(config: ChannelConfig, deposit: SignedDeposit) {
    return sendFirst(devnet.accounts.seller, encodeDeposit(config, deposit));
  }

  /** A stranger executes a deposit, behind all else in its block. */
  async function sendDepositLast(config: ChannelConfig, deposit: SignedDeposit) {
    const { accounts, client } = devnet;
    const { baseFeePerGas } = await client.getBlock();
    return client.sendTransaction({
      account: accounts.seller,
      to: channelContracts.settlement,
      data: encodeDeposit(config, deposit),
      gas: 500_000n,
      maxFeePerGas: baseFeePerGas ?? 0n,
      maxPriorityFeePerGas: 0n,
    });
  }

  /** The receiver gives money of a channel back, before all else in its block. */
  function refundFirst(config: ChannelConfig, amount: bigint) {
    const args = [config, amount] as const;
    const data = encodeFunctionData({ abi: channelSettlementAbi, functionName: "refund", args });
    return sendFirst(devnet.accounts.seller, data);
  }

  /** The payer ends its withdrawal, before all else in its block. */
  function finishFirst(config: ChannelConfig) {
    const functionName = "finalizeWithdraw";
    const data = encodeFunctionData({ abi: channelSettlementAbi, functionName, args: [config] });
    return sendFirst(devnet.accounts.buyer, data);
  }

  /** The transactions that have paid claims since a block, each with the ids of its channels. */
  async function claimsSince(fromBlock: bigint) {
    const { settlement: address } = channelContracts;
    const logs = await devnet.client.getLogs({ address, fromBlock });
    const events = parseEventLogs({ abi: channelSettlementAbi, logs, eventName: "Claimed" });
    const claims = new Map<Hex, Hex[]>();
    for (const { transactionHash, args } of events) {
      claims.set(transactionHash, [...(claims.get(transactionHash) ?? []), args.channelId]);
    }
    return [...claims.values()];
  }

  return {
    depositAll,
    withdrawAll,
    sendFirst,
    refundFirst,
    finishFirst,
    sendDepositFirst,
    sendDepositLast,
    claimsSince,
  };
}
