import {
  type ChannelFixture,
  type ClaimRow,
  createChannelFixture,
  type Devnet,
  placeChannels,
} from "@coinslot/devnet";
import {
  type Address,
  type ChannelCallAnswer,
  type ChannelConfig,
  channelContracts,
  channelScheme,
  channelSettlementAbi,
  type Hex,
  readChannelSettlement,
  readChannelVerification,
} from "@coinslot/protocol";
import { encodeFunctionData } from "viem";
import type { HostedChannelOptions } from "../configuration/hosted-channel-options.ts";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { signDepositRequest, type TestDeposit, wireOf } from "./channel-deposits.ts";
import { type Engine, type SettlingDevnet, startSettlingDevnet } from "./settling-devnet.ts";

export type HostingDevnet = Awaited<ReturnType<typeof startHostingDevnet>>;

/** A facilitator, as far as its callers' channels go. */
type Hosting = Pick<CoinslotFacilitator, "hostedChannels">;

interface Asking {
  /** Owner of the key. Default: the seller's. `null`: no key. */
  caller?: string | null;
  payTo?: Address;
  isGone?: () => boolean;
}

/**
 * A devnet with the contracts of channels, and facilitators that serve them to two callers: `shop`
 * has the fixture's receiver, `kiosk` another one. They have the key of the fixture's authorizer.
 */
export async function startHostingDevnet(engine: Engine) {
  const here = await startSettlingDevnet(engine);
  const { devnet } = here;
  await placeChannels(devnet);
  const channels = createChannelFixture(devnet);
  const { accounts, network, token } = devnet;
  const callers = [
    { name: "shop", receivers: [accounts.seller.address] },
    { name: "kiosk", receivers: [accounts.deployer.address] },
  ];

  function start(
    options: Partial<HostedChannelOptions> = {},
    others: Parameters<SettlingDevnet["start"]>[0] = {},
  ): Promise<CoinslotFacilitator> {
    const { privateKey } = accounts.deployer;
    return here.start({
      hostedChannels: { callers, authorizer: { privateKey }, ...options },
      ...others,
      network: { finalAfter: 2, ...others.network },
    });
  }

  function requirementsOf(
    { receiverAuthorizer, withdrawDelay }: ChannelConfig,
    payTo: Address = accounts.seller.address,
  ) {
    const extra = { name: "USDT0", version: "1", receiverAuthorizer, withdrawDelay };
    const terms = { scheme: channelScheme, network, asset: token, payTo, extra };
    return { ...terms, amount: "1000", maxTimeoutSeconds: 60 };
  }

  /** The body of a request, as it travels. */
  function bodyOf(payload: object, { payTo, config = channels.configOf() }: BodyOptions = {}) {
    const paymentRequirements = requirementsOf(config, payTo);
    const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
    const text = JSON.stringify({ paymentPayload, paymentRequirements }, (_, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
    const body: unknown = JSON.parse(text);
    return body;
  }

  function settle(
    { hostedChannels }: Hosting,
    payload: object,
    options: Asking & BodyOptions = {},
  ): Promise<ChannelCallAnswer> {
    const read = readChannelSettlement(bodyOf(payload, options));
    if (!read.ok) throw new Error(read.message);
    if (hostedChannels === undefined) throw new Error("No channels are served.");
    return hostedChannels.settle(read.request, askerOf(options));
  }

  function verify(
    { hostedChannels }: Hosting,
    payload: object,
    options: Asking & BodyOptions = {},
  ) {
    const read = readChannelVerification(bodyOf(payload, options));
    if (!read.ok) throw new Error(read.message);
    if (hostedChannels === undefined) throw new Error("No channels are served.");
    return hostedChannels.verify(read.request, askerOf(options));
  }

  /** Funds a channel by the buyer's own transaction: the relayer's nonces are the facilitators'. */
  async function fund(config: ChannelConfig, amount: bigint, options: { salt?: Hex } = {}) {
    const collected = await channels.signDeposit(config, amount, options);
    const args = [config, amount, channelContracts.erc3009Collector, collected] as const;
    const abi = channelSettlementAbi;
    const data = encodeFunctionData({ abi, functionName: "deposit", args });
    return channels.send(data, accounts.buyer);
  }

  /** A channel of the buyer that has money. */
  async function open(amount: bigint, parts: Partial<ChannelConfig> = {}): Promise<ChannelConfig> {
    const config = channels.configOf(parts);
    await fund(config, amount);
    return config;
  }

  return {
    ...here,
    channels,
    callers,
    start,
    bodyOf,
    settle,
    verify,
    fund,
    open,
    ...createPayloads(here.devnet, channels),
  };
}

/** Payloads of a buyer and of a seller's server. */
function createPayloads(devnet: Devnet, channels: ChannelFixture) {
  const claim = (claims: readonly ClaimRow[], claimAuthorizerSignature?: Hex) => ({
    type: "claim",
    claims,
    claimAuthorizerSignature,
  });

  async function voucher(config: ChannelConfig, maxClaimableAmount: bigint) {
    const signature = await channels.signVoucher(config, maxClaimableAmount);
    return {
      type: "voucher",
      channelConfig: config,
      voucher: { channelId: channels.idOf(config), maxClaimableAmount, signature },
    };
  }

  async function refund(
    config: ChannelConfig,
    charged: bigint,
    parts: {
      amount: bigint;
      refundNonce?: bigint;
      claims?: readonly ClaimRow[];
      refundAuthorizerSignature?: Hex;
    },
  ) {
    return {
      refundNonce: 0n,
      claims: [],
      ...(await voucher(config, charged)),
      ...parts,
      type: "refund",
    };
  }

  async function deposit(config: ChannelConfig, options: TestDeposit = {}): Promise<object> {
    return Object(wireOf(await signDepositRequest({ devnet, channels }, config, options)));
  }

  return { claim, voucher, refund, deposit };
}

interface BodyOptions {
  payTo?: Address;
  /** Its terms are those of the requirements. */
  config?: ChannelConfig;
}

function askerOf({ caller = "shop", isGone = () => false }: Asking) {
  return { caller: caller ?? undefined, isGone };
}
