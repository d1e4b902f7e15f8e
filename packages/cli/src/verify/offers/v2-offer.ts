import { DecodeError, decodePaymentRequired, headerName } from "@coinslot/protocol";
import { type Answer, headerOf } from "../ask-seller.ts";
import { failed, passed, warning } from "../check.ts";
import { eip3009Ways } from "./eip3009-ways.ts";
import { findLargeDeposit } from "./large-deposits.ts";
import type { WireOffer } from "./read-offers.ts";

/** The `PAYMENT-REQUIRED` header, as clients of version 2 read it. */
export function readV2Offer(answer: Answer): WireOffer {
  const header = headerOf(answer, headerName.paymentRequired);
  if (header === undefined) {
    return { status: "not offered", found: "there is no PAYMENT-REQUIRED header", ways: [] };
  }
  try {
    const offer = decodePaymentRequired(header);
    const ways = eip3009Ways(offer);
    if (offer.accepts.length === 0) {
      return { ...failed("the header names no way to pay that can be read"), ways };
    }
    if (ways.length === 0) {
      return { ...warning("no way is paid by an EIP-3009 authorization"), ways };
    }
    const deposit = findLargeDeposit(offer);
    if (deposit !== undefined) return { ...warning(deposit), ways };
    const count = ways.length === 1 ? "1 way" : `${ways.length} ways`;
    const text = `@x402/fetch, @x402/axios, mppx and @coinslot/client read it (${count} to pay)`;
    return { ...passed(text), ways };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return { ...failed("the PAYMENT-REQUIRED header cannot be read"), ways: [] };
  }
}
