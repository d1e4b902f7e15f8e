import {
  depositTypedData,
  type Hex,
  headerName,
  maxHeaderLength,
  voucherTypedData,
} from "@coinslot/protocol";
import { bytesToHex } from "viem";
import type { PayingFetchContext } from "../paying-fetch-options.ts";
import { PaymentError } from "../payment-error.ts";
import { hashBody, type RepeatableRequest } from "../send/repeatable-request.ts";
import { untilAborted } from "../sign/book-and-sign.ts";
import type { PayingAccount } from "../sign/payer.ts";
import type { PaymentTerms, SignedPayment } from "../sign/signed-payment.ts";
import type { ChannelMessage } from "../wires/wire.ts";
import type { ChannelRecord, OpenDeposit } from "./channel-record.ts";
import { isSignedBy } from "./check-correction.ts";
import type { ChannelCandidate } from "./choose-channel.ts";

/** A purchase by a channel: the request, and the entry of the offer that it pays. */
export interface ChannelPurchase {
  candidate: ChannelCandidate;
  request: RepeatableRequest;
  /** Destination of the payment. */
  url: URL;
}

/**
 * Signs a voucher for a stored ceiling, and the deposit that goes with it. The ceiling must be on
 * the disk before.
 *
 * @throws PaymentError `signing_failed` or `payment_too_large`, or the signal's reason; then no
 * signature is left
 */
export async function signChannelPayment(
  context: PayingFetchContext,
  purchase: ChannelPurchase,
  signed: { record: ChannelRecord; ceiling: bigint; deposit: OpenDeposit | undefined },
): Promise<SignedPayment> {
  const { account, onPayment } = context;
  const { candidate, request, url } = purchase;
  const { record, ceiling, deposit } = signed;
  const { signal } = request;
  const terms = draftTerms(context, purchase, signed);
  const { protocol, description } = candidate.way;
  onPayment({ state: "booked", host: url.host, terms, offer: { protocol, description } });
  signal?.throwIfAborted();
  const voucher = await untilAborted(signVoucher(account, record, ceiling), signal);
  const channelConfig = record.config;
  const message: ChannelMessage =
    deposit === undefined
      ? { type: "voucher", channelConfig, voucher }
      : {
          type: "deposit",
          channelConfig,
          voucher,
          deposit: await untilAborted(signDeposit(account, candidate, record, deposit), signal),
        };
  if (context.now() >= terms.validBefore * 1000) {
    const text = "The payment expired while the account signed it; nothing was sent";
    throw new PaymentError("signing_failed", text);
  }
  const idempotencyKey =
    request.headers.get(headerName.idempotencyKey) ?? bytesToHex(context.randomBytes(32)).slice(2);
  const header = candidate.writeChannel(message, idempotencyKey);
  if (header.value.length > maxHeaderLength) {
    const text = `The members to repeat make the payment longer than ${maxHeaderLength} characters`;
    throw new PaymentError("payment_too_large", text);
  }
  onPayment({ state: "signed", host: url.host, terms });
  return {
    request: { method: request.method, url: request.url.href, bodyHash: hashBody(request) },
    sendTo: url.href,
    header,
    idempotencyKey,
    terms,
  };
}

/** Signs a voucher, in its wire form. */
export async function signVoucher(
  account: PayingAccount,
  { id, network }: ChannelRecord,
  ceiling: bigint,
) {
  const data = voucherTypedData({ channelId: id, maxClaimableAmount: ceiling }, { network });
  const signature = await signed(() => account.signTypedData(data));
  // The escrow takes plain ECDSA alone. A deposit without a claimable voucher would pay for
  // nothing.
  if (!(await isSignedBy(account.address, data, signature))) {
    const text = "A payment channel needs a signature of the account's own key, not of a contract";
    throw new PaymentError("signing_failed", text);
  }
  return { channelId: id, maxClaimableAmount: `${ceiling}`, signature };
}

async function signDeposit(
  account: PayingAccount,
  { asset: { name, version } }: ChannelCandidate,
  { id, network, config }: ChannelRecord,
  { amount, salt, validBefore }: OpenDeposit,
) {
  const data = depositTypedData({
    network,
    token: config.token,
    domain: { name, version },
    payer: config.payer,
    channelId: id,
    amount,
    validAfter: 0n,
    validBefore: BigInt(validBefore),
    salt,
  });
  const signature = await signed(() => account.signTypedData(data));
  const times = { validAfter: "0", validBefore: `${validBefore}` };
  const erc3009Authorization = { ...times, salt, signature };
  return { amount: `${amount}`, authorization: { erc3009Authorization } };
}

async function signed(sign: () => Promise<Hex>): Promise<Hex> {
  try {
    return await sign();
  } catch (cause) {
    throw new PaymentError("signing_failed", "The account did not sign the payment", { cause });
  }
}

function draftTerms(
  { now, maxValiditySeconds, randomBytes }: PayingFetchContext,
  { candidate }: ChannelPurchase,
  { record, ceiling, deposit }: Parameters<typeof signChannelPayment>[2],
): PaymentTerms {
  const { id, network, config } = record;
  return {
    network,
    asset: config.token,
    payer: config.payer,
    payTo: config.receiver,
    amount: candidate.way.amount,
    nonce: bytesToHex(randomBytes(32)),
    validBefore: deposit?.validBefore ?? Math.floor(now() / 1000) + maxValiditySeconds,
    channel: {
      id,
      ceiling: `${ceiling}`,
      ...(deposit === undefined ? {} : { deposit: `${deposit.amount}` }),
    },
  };
}
