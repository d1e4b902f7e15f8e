import type { DevAccount } from "@coinslot/devnet";
import {
  type ChannelConfig,
  type ChannelDepositOutcome,
  type ChannelDepositRequest,
  depositTypedData,
  type Hex,
} from "@coinslot/protocol";
import { bytesToHex } from "viem";
import { vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { type ClaimingDevnet, patience, price } from "./claiming-devnet.ts";

const domain = { name: "USDT0", version: "1" };

export interface TestDeposit {
  amount?: bigint;
  /** Of its voucher. Default: one price. */
  ceiling?: bigint;
  salt?: Hex;
  /** Signs the authorization. Default: the buyer. */
  payer?: DevAccount;
  /** Signs the voucher. Default: the buyer. */
  signer?: DevAccount;
  validBefore?: bigint;
  timeoutMs?: number;
}

/** Signs the payload of a deposit, with its voucher, as a request of one price. */
export async function signDepositRequest(
  { devnet, channels }: Pick<ClaimingDevnet, "devnet" | "channels">,
  channelConfig: ChannelConfig,
  deposit: TestDeposit = {},
): Promise<ChannelDepositRequest> {
  const { amount = 20_000n, ceiling = price, payer = devnet.accounts.buyer } = deposit;
  const { validBefore = 4_000_000_000n, timeoutMs = 60_000 } = deposit;
  const { salt = bytesToHex(crypto.getRandomValues(new Uint8Array(32))) } = deposit;
  const channelId = channels.idOf(channelConfig);
  const times = { validAfter: 0n, validBefore, salt };
  const signature = await payer.signTypedData(
    depositTypedData({
      network: devnet.network,
      token: channelConfig.token,
      domain,
      payer: channelConfig.payer,
      channelId,
      amount,
      ...times,
    }),
  );
  const voucher = {
    channelId,
    maxClaimableAmount: ceiling,
    signature: await channels.signVoucher(channelConfig, ceiling, deposit.signer),
  };
  return {
    network: devnet.network,
    route: "GET /weather",
    presented: { channelConfig, voucher },
    price,
    fingerprint: `GET /weather ${ceiling}`,
    isGone: () => false,
    deposit: { amount, authorization: { erc3009Authorization: { ...times, signature } } },
    domain,
    minDeposit: 10n * price,
    timeoutMs,
  };
}

/** Presents a deposit until its outcome is known, and mines meanwhile. */
export function deposit(
  { devnet }: Pick<ClaimingDevnet, "devnet">,
  facilitator: Pick<CoinslotFacilitator, "channels">,
  request: ChannelDepositRequest,
): Promise<ChannelDepositOutcome> {
  return vi.waitFor(async () => {
    const outcome = await present(facilitator, { ...request, timeoutMs: 500 });
    if (outcome.state !== "busy" && outcome.state !== "pending") return outcome;
    await devnet.mine(1);
    throw new Error(`The deposit is ${outcome.state}.`);
  }, patience);
}

/** Presents a deposit once. */
export async function present(
  { channels: sales }: Pick<CoinslotFacilitator, "channels">,
  request: ChannelDepositRequest,
): Promise<ChannelDepositOutcome> {
  const outcome = await sales?.deposit?.(request);
  if (outcome === undefined) throw new Error("No deposits are executed.");
  return outcome;
}

/** The payload of a deposit's request, as it travels. */
export function wireOf({ presented, deposit }: ChannelDepositRequest): unknown {
  const payload = { type: "deposit", ...presented, deposit };
  return JSON.parse(
    JSON.stringify(payload, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    ),
  );
}
