import type { ServerResponse } from "node:http";
import { createMutex } from "@coinslot/concurrency";
import { createChannelFixture, type Devnet } from "@coinslot/devnet";
import {
  type ChannelPayload,
  channelPayloadSchema,
  correctChannelOffer,
  encodeCollectorData,
  encodePaymentRequired,
  formatChannelReceipt,
  type Hex,
  headerName,
  isSameAddress,
  type PaymentRequirements,
  plasma,
  voucherTypedData,
} from "@coinslot/protocol";
import { recoverTypedDataAddress } from "viem";
import { type Listening, listen, type ReceivedRequest } from "./listen.ts";
import { requirements as exactRequirements } from "./seller.ts";

/** A request with a payload of a channel. */
export interface ChannelPaid {
  request: ReceivedRequest;
  payload: ChannelPayload;
  idempotencyKey: string | undefined;
  /** The voucher's id, ceiling and signature, for short. */
  id: Hex;
  ceiling: bigint;
}

/** The last voucher that the seller has charged, and the sum. */
interface Charged {
  charged: bigint;
  signed: bigint;
  signature: Hex;
}

/** A seller by channels, whose every step a test may replace. */
export interface ChannelSeller extends Listening {
  paid: ChannelPaid[];
  /** Requests of exact payments. */
  exact: ReceivedRequest[];
  /** Its charged sums, by channel. */
  books: Map<Hex, Charged>;
  /** Handler runs. */
  sold: { id: Hex; ceiling: bigint; amount: bigint }[];
  terms(): PaymentRequirements;
  /** Executes the deposit of a payload on the chain. */
  deposit(paid: ChannelPaid): Promise<void>;
  /** Charges and answers. */
  sell(paid: ChannelPaid, response: ServerResponse, amount?: bigint): void;
  /** Answers 402 with what it has of the channel, or with other numbers. */
  correct(paid: ChannelPaid, response: ServerResponse, change?: Correction): Promise<void>;
}

export interface Correction {
  id?: Hex;
  charged?: bigint;
  signed?: bigint | undefined;
  signature?: Hex | undefined;
  terms?: Partial<PaymentRequirements>;
  extra?: Record<string, unknown>;
  reason?: string;
}

/** Of all sellers of a test: they share a relayer, whose nonces are the node's. */
const relaying = createMutex();

const mismatch = "invalid_batch_settlement_evm_cumulative_amount_mismatch";

/**
 * Starts an honest seller by channels on a devnet that has the contracts. It charges the whole
 * price, and counts as the reference does.
 */
export async function startChannelSeller(
  devnet: Devnet,
  options: {
    amount?: bigint;
    terms?: () => Partial<PaymentRequirements>;
    extra?: () => Record<string, unknown>;
    /** Offers `exact` beside it. */
    offersExact?: boolean;
    onPaid?: (
      paid: ChannelPaid,
      response: ServerResponse,
      count: number,
    ) => boolean | Promise<boolean>;
    onExact?: (request: ReceivedRequest, response: ServerResponse) => void;
  } = {},
): Promise<ChannelSeller> {
  const channels = createChannelFixture(devnet);
  const { seller: receiver, deployer } = devnet.accounts;
  const paid: ChannelPaid[] = [];
  const exact: ReceivedRequest[] = [];
  const books: ChannelSeller["books"] = new Map();
  const sold: ChannelSeller["sold"] = [];

  const terms = (): PaymentRequirements => ({
    scheme: "batch-settlement",
    network: devnet.network,
    amount: `${options.amount ?? 1000n}`,
    asset: devnet.token,
    payTo: receiver.address,
    maxTimeoutSeconds: 300,
    extra: {
      name: "USDT0",
      version: "1",
      receiverAuthorizer: deployer.address,
      withdrawDelay: 900,
      minDeposit: "10000",
      ...options.extra?.(),
    },
    ...options.terms?.(),
  });

  function offer(response: ServerResponse, accepts: PaymentRequirements[], error?: string): void {
    const message = { x402Version: 2 as const, resource: { url: "/" }, accepts };
    const header = encodePaymentRequired({ ...message, ...(error ? { error } : {}) });
    response.writeHead(402, { [headerName.paymentRequired]: header }).end("{}");
  }

  const self: Omit<ChannelSeller, keyof Listening> = {
    paid,
    exact,
    books,
    sold,
    terms,
    async deposit({ payload }) {
      if (payload.type !== "deposit") return;
      const { erc3009Authorization: authorization } = payload.deposit.authorization;
      if (authorization === undefined) throw new TypeError("It is no ERC-3009 deposit");
      await relaying.run(async () => {
        await channels.deposit(payload.channelConfig, payload.deposit.amount, {
          collectorData: encodeCollectorData(authorization),
        });
      });
    },
    sell({ id, ceiling, payload }, response, amount = BigInt(terms().amount)) {
      const before = books.get(id)?.charged ?? 0n;
      const charged = before + amount;
      books.set(id, { charged, signed: ceiling, signature: payload.voucher.signature });
      sold.push({ id, ceiling, amount });
      const receipt = {
        success: true,
        network: devnet.network,
        transaction: payload.type === "deposit" ? `0x${"ab".repeat(32)}` : "",
        amount: "",
        extra: formatChannelReceipt({ chargedAmount: amount, channelState: undefined }),
      };
      const value = Buffer.from(JSON.stringify(receipt)).toString("base64");
      response.writeHead(200, { [headerName.paymentResponse]: value }).end('{"forecast":"sun"}');
    },
    async correct({ id }, response, change = {}) {
      const known = books.get(id);
      const { charged = known?.charged ?? 0n } = change;
      const signed = "signed" in change ? change.signed : known?.signed;
      const signature = "signature" in change ? change.signature : known?.signature;
      const entry = correctChannelOffer(
        { ...terms(), ...change.terms, extra: { ...terms().extra, ...change.extra } },
        {
          channelState: {
            channelId: change.id ?? id,
            balance: 0n,
            totalClaimed: 0n,
            withdrawRequestedAt: 0,
            refundNonce: 0n,
            chargedCumulativeAmount: charged,
          },
          voucherState: { signedMaxClaimable: signed, signature },
        },
      );
      offer(response, [entry], change.reason ?? mismatch);
    },
  };

  const listening = await listen(async (request, response) => {
    const header = request.headers["payment-signature"];
    const accepts = [terms(), ...(options.offersExact ? [exactRequirements()] : [])];
    if (typeof header !== "string") return offer(response, accepts);
    const message = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
    if (message.accepted.scheme !== "batch-settlement") {
      exact.push(request);
      if (options.onExact) return options.onExact(request, response);
      const receipt = { success: true, transaction: "0xab", network: devnet.network };
      const value = Buffer.from(JSON.stringify(receipt)).toString("base64");
      response.writeHead(200, { [headerName.paymentResponse]: value }).end('{"forecast":"sun"}');
      return;
    }
    const visit = await readVisit(request, message.payload);
    const { id, ceiling } = visit;
    paid.push(visit);
    if (await options.onPaid?.(visit, response, paid.length)) return;
    if (ceiling !== (books.get(id)?.charged ?? 0n) + BigInt(terms().amount)) {
      return self.correct(visit, response);
    }
    try {
      await self.deposit(visit);
    } catch {
      const reason = "invalid_batch_settlement_evm_deposit_transaction_failed";
      return offer(response, [terms()], reason);
    }
    self.sell(visit, response);
  });
  return { ...listening, ...self };
}

/** @throws when the voucher is not one that its channel's payer has signed */
async function readVisit(request: ReceivedRequest, message: unknown): Promise<ChannelPaid> {
  const payload = channelPayloadSchema.parse(message);
  const key = request.headers["idempotency-key"];
  const { channelId: id, maxClaimableAmount: ceiling, signature } = payload.voucher;
  const data = voucherTypedData(
    { channelId: id, maxClaimableAmount: ceiling },
    { network: plasma },
  );
  const signer = await recoverTypedDataAddress({ ...data, signature });
  if (!isSameAddress(signer, payload.channelConfig.payerAuthorizer)) throw new Error("Forged");
  return {
    request,
    payload,
    idempotencyKey: typeof key === "string" ? key : undefined,
    id,
    ceiling,
  };
}
