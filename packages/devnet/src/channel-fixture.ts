import {
  type ChannelConfig,
  channelContracts,
  channelIdOf,
  channelRefundTypedData,
  channelSettlementAbi,
  claimBatchTypedData,
  depositTypedData,
  encodeCollectorData,
  toLowerHex,
  voucherTypedData,
} from "@coinslot/protocol";
import {
  type Address,
  BaseError,
  bytesToHex,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  isAddressEqual,
  parseAbi,
  parseEventLogs,
  type TransactionReceipt,
  zeroHash,
} from "viem";
import * as z from "zod";
import type { DevAccount } from "./accounts.ts";
import type { Devnet } from "./devnet.ts";

/** A voucher, and the part of it that a claim asks for. */
export interface ClaimRow {
  voucher: { channel: ChannelConfig; maxClaimableAmount: bigint };
  signature: Hex;
  totalClaimed: bigint;
}

const abi = channelSettlementAbi;
const settlement = { address: channelContracts.settlement, abi };
const errorsAbi = [...abi, ...parseAbi(["error Error(string reason)"])] as const;
const revertSchema = z.object({
  data: z.templateLiteral(["0x", z.string().regex(/^[0-9a-f]{8,}$/)]),
});

type Signer = ReturnType<typeof createChannelSigner>;

interface DepositOptions {
  /** Makes another authorization of the same deposit. */
  salt?: Hex;
  signer?: DevAccount;
  collector?: Address;
  /** In place of the payer's signature. */
  collectorData?: Hex;
}

export type ChannelFixture = ReturnType<typeof createChannelFixture>;

/** Acts as buyer, seller and relayer of channels on a devnet, for tests of the contracts. */
export function createChannelFixture(devnet: Devnet) {
  const signer = createChannelSigner(devnet);
  return { ...signer, ...createChannelSender(devnet, signer) };
}

function createChannelSigner({ network, token, accounts }: Devnet) {
  const { buyer, seller, deployer } = accounts;
  const place = { network };

  /** A config of the buyer and the seller; the deployer is the receiver's authorizer. */
  function configOf(parts: Partial<ChannelConfig> = {}): ChannelConfig {
    return {
      payer: toLowerHex(buyer.address),
      payerAuthorizer: toLowerHex(buyer.address),
      receiver: toLowerHex(seller.address),
      receiverAuthorizer: toLowerHex(deployer.address),
      token: toLowerHex(token),
      withdrawDelay: 900,
      salt: bytesToHex(crypto.getRandomValues(new Uint8Array(32))),
      ...parts,
    };
  }

  const idOf = (config: ChannelConfig) => channelIdOf(config, place);

  function signVoucher(config: ChannelConfig, maxClaimableAmount: bigint, signer = buyer) {
    const message = { channelId: idOf(config), maxClaimableAmount };
    return signer.signTypedData(voucherTypedData(message, place));
  }

  /** A row that claims a part of a voucher, by default all of it. */
  async function rowOf(
    config: ChannelConfig,
    maxClaimableAmount: bigint,
    { totalClaimed = maxClaimableAmount, signer = buyer } = {},
  ): Promise<ClaimRow> {
    const signature = await signVoucher(config, maxClaimableAmount, signer);
    return { voucher: { channel: config, maxClaimableAmount }, signature, totalClaimed };
  }

  function signBatch(rows: readonly ClaimRow[], signer = deployer): Promise<Hex> {
    const entries = rows.map(({ voucher: { channel, maxClaimableAmount }, totalClaimed }) => ({
      channelId: idOf(channel),
      maxClaimableAmount,
      totalClaimed,
    }));
    return signer.signTypedData(claimBatchTypedData(entries, place));
  }

  function signRefund(config: ChannelConfig, amount: bigint, nonce: bigint, signer = deployer) {
    const message = { channelId: idOf(config), nonce, amount };
    return signer.signTypedData(channelRefundTypedData(message, place));
  }

  /** The collector's data of a deposit that its payer has signed. */
  async function signDeposit(
    config: ChannelConfig,
    amount: bigint,
    { salt = zeroHash, signer = buyer }: Pick<DepositOptions, "salt" | "signer"> = {},
  ): Promise<Hex> {
    const times = { validAfter: 0n, validBefore: 4_000_000_000n, salt };
    const data = depositTypedData({
      network,
      token: config.token,
      domain: { name: "USDT0", version: "1" },
      payer: config.payer,
      channelId: idOf(config),
      amount,
      ...times,
    });
    return encodeCollectorData({ ...times, signature: await signer.signTypedData(data) });
  }

  return { configOf, idOf, signVoucher, rowOf, signBatch, signRefund, signDeposit };
}

function createChannelSender(devnet: Devnet, { idOf, signBatch, signDeposit, signRefund }: Signer) {
  const { client, accounts, token } = devnet;
  const { relayer, buyer, seller } = accounts;

  /** Sends a call to the escrow; rejects with the name of its error. */
  async function send(data: Hex, account: DevAccount = relayer): Promise<TransactionReceipt> {
    try {
      const hash = await client.sendTransaction({ account, to: channelContracts.settlement, data });
      return await client.waitForTransactionReceipt({ hash });
    } catch (error) {
      const reason = findRevertData(error);
      if (reason === undefined) throw error;
      throw new Error(errorNameOf(reason), { cause: error });
    }
  }

  return {
    send,
    async deposit(config: ChannelConfig, amount: bigint, options: DepositOptions = {}) {
      const { collector = channelContracts.erc3009Collector } = options;
      const data = options.collectorData ?? (await signDeposit(config, amount, options));
      const args = [config, amount, collector, data] as const;
      return send(encodeFunctionData({ abi, functionName: "deposit", args }));
    },
    claim: (rows: readonly ClaimRow[], account: DevAccount = seller) =>
      send(encodeFunctionData({ abi, functionName: "claim", args: [rows] }), account),
    /** As anyone, with the authorizer's signature. */
    claimSigned: async (rows: readonly ClaimRow[], signature?: Hex) =>
      send(encodeClaim(rows, signature ?? (await signBatch(rows)))),
    settle: (receiver: Address = seller.address) =>
      send(encodeFunctionData({ abi, functionName: "settle", args: [receiver, token] })),
    refund: (config: ChannelConfig, amount: bigint, account: DevAccount = seller) =>
      send(encodeFunctionData({ abi, functionName: "refund", args: [config, amount] }), account),
    refundSigned: async (config: ChannelConfig, amount: bigint, nonce: bigint) =>
      send(encodeRefund(config, amount, nonce, await signRefund(config, amount, nonce))),
    withdraw: (config: ChannelConfig, amount: bigint, account: DevAccount = buyer) =>
      send(
        encodeFunctionData({ abi, functionName: "initiateWithdraw", args: [config, amount] }),
        account,
      ),
    finish: (config: ChannelConfig, account: DevAccount = buyer) =>
      send(encodeFunctionData({ abi, functionName: "finalizeWithdraw", args: [config] }), account),
    multicall: (calls: readonly Hex[], account?: DevAccount) =>
      send(encodeFunctionData({ abi, functionName: "multicall", args: [calls] }), account),
    async stateOf(config: ChannelConfig) {
      const args = [idOf(config)] as const;
      const [[balance, totalClaimed], [pending, initiatedAt], refundNonce] = await Promise.all([
        client.readContract({ ...settlement, functionName: "channels", args }),
        client.readContract({ ...settlement, functionName: "pendingWithdrawals", args }),
        client.readContract({ ...settlement, functionName: "refundNonce", args }),
      ]);
      return { balance, totalClaimed, pending, initiatedAt, refundNonce };
    },
  };
}

export function encodeClaim(rows: readonly ClaimRow[], signature: Hex): Hex {
  return encodeFunctionData({ abi, functionName: "claimWithSignature", args: [rows, signature] });
}

export function encodeRefund(
  config: ChannelConfig,
  amount: bigint,
  nonce: bigint,
  signature: Hex,
): Hex {
  const args = [config, amount, nonce, signature] as const;
  return encodeFunctionData({ abi, functionName: "refundWithSignature", args });
}

/** Data with which a call reverted, from the error that viem throws for it. */
function findRevertData(error: unknown): Hex | undefined {
  if (!(error instanceof BaseError)) return undefined;
  const cause = error.walk((each) => revertSchema.safeParse(each).success);
  return revertSchema.safeParse(cause).data?.data;
}

/** Name of the escrow's error; the text of a token's; else the data. */
function errorNameOf(data: Hex): string {
  try {
    const { errorName, args } = decodeErrorResult({ abi: errorsAbi, data });
    return errorName === "Error" ? String(args[0]) : errorName;
  } catch {
    return data;
  }
}

/** Names and arguments of the escrow's events, in the order of the log. */
export function channelEventsOf({ logs }: Pick<TransactionReceipt, "logs">) {
  const own = logs.filter(({ address }) => isAddressEqual(address, channelContracts.settlement));
  return parseEventLogs({ abi, logs: own }).map(({ eventName, args }) => ({ eventName, args }));
}
