import { listen } from "@coinslot/devnet";
import {
  type ChannelConfig,
  channelContracts,
  channelIdOf,
  channelReceiptSchema,
  decodePaymentRequired,
  type Hex,
  headerName,
  type PaymentRequirements,
  plasma,
  type ReservingFacilitator,
  readChannelOffer,
  toLowerHex,
  voucherTypedData,
} from "@coinslot/protocol";
import express, { type Express } from "express";
import { numberToHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { onTestFinished } from "vitest";
import {
  type ChannelSellerOptions,
  type LookedAtChannel,
  openChannelSeller,
} from "../../../facilitator/src/testing/channel-seller.ts";
import { createLedgerFile } from "../../../facilitator/src/testing/migrated-ledger.ts";
import {
  type ChannelPaymentOption,
  createReservationStore,
  type PaymentMiddlewareOptions,
  type PaymentRoutes,
  paymentMiddleware,
  withReservations,
} from "../index.ts";
import { createPaperFacilitator } from "./paper-facilitator.ts";
import { option, payTo } from "./shop.ts";

const contract = toLowerHex(channelContracts.settlement);
/** The account that signs claims of these tests' channels. */
const receiverAuthorizer: Hex = `0x${"a4".repeat(20)}`;

/** A way to pay by channels, of 1,000 units at most. */
export function channelOption(change: Partial<ChannelPaymentOption> = {}): ChannelPaymentOption {
  return { scheme: "batch-settlement", network: plasma, payTo, price: option().price, ...change };
}

/** A seller of channels that listens. Its chain is on paper: each channel has 1,000,000 units. */
export async function openChannelShop(config: {
  routes: PaymentRoutes;
  serve: (app: Express) => void;
  /** Middleware before the gate. */
  before?: (app: Express) => void;
  options?: PaymentMiddlewareOptions;
  sales?: ChannelSellerOptions["options"];
  /** Of another shop, which has been closed. */
  url?: string;
}) {
  const place = config.url === undefined ? await createLedgerFile() : undefined;
  const url = config.url ?? place?.url ?? "";
  const chain = new Map<Hex, LookedAtChannel>();
  const funded: LookedAtChannel = {
    balance: 1_000_000n,
    totalClaimed: 0n,
    withdrawRequestedAt: 0,
    refundNonce: 0n,
    secure: 1_000_000n,
  };
  const seller = await openChannelSeller({
    url,
    network: plasma,
    contract,
    receiverAuthorizer,
    look: async (channelId) => chain.get(channelId) ?? funded,
    processId: crypto.randomUUID(),
    ...(config.sales === undefined ? {} : { options: config.sales }),
  });
  const paper = createPaperFacilitator();
  const facilitator: ReservingFacilitator = {
    ...withReservations(paper, createReservationStore()),
    channels: seller.sales,
  };
  const errors: unknown[] = [];
  const app = express();
  const gate = paymentMiddleware(config.routes, facilitator, {
    onError: (error) => errors.push(error),
    ...config.options,
  });
  config.before?.(app);
  app.use(gate);
  config.serve(app);
  await gate.ready();
  const listening = await listen(app);
  let isClosed = false;
  async function close(): Promise<void> {
    if (isClosed) return;
    isClosed = true;
    await listening.close();
    await seller.close();
  }
  onTestFinished(async () => {
    await close();
    await place?.drop();
  });
  return { ...seller, url: listening.url, ledgerUrl: url, chain, errors, close };
}

/** The way to pay by a channel in a 402 answer. */
export function channelOfferOf(response: Response): PaymentRequirements {
  const header = response.headers.get(headerName.paymentRequired) ?? "";
  const accepts = decodePaymentRequired(header).accepts.map(({ requirements }) => requirements);
  const found = accepts.find(({ scheme }) => scheme === "batch-settlement");
  if (found === undefined) throw new Error(`No channel is offered: ${header}`);
  return found;
}

/** The `extra` of a receipt. */
export function channelReceiptOf(response: Response) {
  const header = response.headers.get(headerName.paymentResponse);
  if (header === null) return undefined;
  const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
  const extra = message && typeof message === "object" && Reflect.get(message, "extra");
  return channelReceiptSchema.parse(extra);
}

/** A buyer with one channel for each seller. */
export function createChannelBuyer(account = privateKeyToAccount(generatePrivateKey())) {
  const payer: Hex = `0x${"b1".repeat(20)}`;

  function configOf(requirements: PaymentRequirements, parts: Partial<ChannelConfig> = {}) {
    const offer = readChannelOffer(requirements);
    if (offer === undefined) throw new Error("Not an offer of channels");
    const { receiver, receiverAuthorizer, token, withdrawDelay } = offer;
    return {
      payer,
      payerAuthorizer: toLowerHex(account.address),
      receiver,
      receiverAuthorizer,
      token,
      withdrawDelay,
      salt: numberToHex(0, { size: 32 }),
      ...parts,
    };
  }

  return {
    account,
    payer,
    idOf: (requirements: PaymentRequirements) =>
      channelIdOf(configOf(requirements), { network: requirements.network }),
    /** The headers that pay with a voucher. */
    async pay(
      requirements: PaymentRequirements,
      ceiling: bigint,
      parts: { config?: Partial<ChannelConfig>; type?: string } = {},
    ): Promise<Record<string, string>> {
      const channelConfig = configOf(requirements, parts.config);
      const place = { network: requirements.network };
      const channelId = channelIdOf(channelConfig, place);
      const message = { channelId, maxClaimableAmount: ceiling };
      const signature = await account.signTypedData(voucherTypedData(message, place));
      const voucher = { channelId, maxClaimableAmount: `${ceiling}`, signature };
      const { extra, ...accepted } = requirements;
      const { channelState: _, voucherState: __, ...terms } = extra ?? {};
      const payload = { type: parts.type ?? "voucher", channelConfig, voucher };
      const payment = { x402Version: 2, accepted: { ...accepted, extra: terms }, payload };
      return {
        [headerName.paymentSignature]: Buffer.from(JSON.stringify(payment)).toString("base64"),
      };
    },
  };
}
