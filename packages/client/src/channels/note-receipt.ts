import { type ChannelReceipt, channelReceiptSchema, headerName } from "@coinslot/protocol";
import * as z from "zod";
import type { SignedPayment } from "../sign/signed-payment.ts";
import { type ChannelLedger, learnCharged, lookAtChain } from "./channel-ledger.ts";
import type { ChannelRecord } from "./channel-record.ts";

const receiptSchema = z.object({ extra: channelReceiptSchema });

/**
 * Takes over what a receipt says was charged: at most the price, on top of the own count. A receipt
 * without it charges the price. Of a deposit it takes that the seller reports it; its amount is
 * looked up on the chain. Never throws: the answer is paid for, and what is not noted is corrected.
 */
export async function noteReceipt(
  ledger: ChannelLedger,
  {
    record,
    payment,
    response,
  }: { record: ChannelRecord; payment: SignedPayment; response: Response },
): Promise<void> {
  const { channel, amount: price } = payment.terms;
  if (channel === undefined) return;
  try {
    const amount = BigInt(price);
    const said = readReceipt(response.headers)?.chargedAmount ?? amount;
    const base = BigInt(channel.ceiling) - amount;
    // A resumed payment may be older than what is known since.
    const charged =
      record.charged === base ? base + (said < amount ? said : amount) : record.charged;
    let noted = await learnCharged(ledger, record, charged);
    const { deposit } = noted;
    if (channel.deposit === undefined || deposit === undefined) return;
    const reported = { ...deposit, isReported: true };
    noted = ledger.store.update(noted.id, (stored) => ({ ...stored, deposit: reported }));
    await lookAtChain(ledger, noted);
  } catch {
    // The next voucher has the same ceiling, and the seller corrects it.
  }
}

function readReceipt(headers: Headers): ChannelReceipt | undefined {
  const header = headers.get(headerName.paymentResponse);
  try {
    const json: unknown = JSON.parse(Buffer.from(header ?? "", "base64").toString("utf8"));
    return receiptSchema.safeParse(json).data?.extra;
  } catch {
    return undefined;
  }
}
