import { decodePaymentReceipt, decodeReceipt, headerName } from "@coinslot/protocol";
import * as z from "zod";
import type { DecodedHeader, ShownReceipt } from "../cycles/cycle.ts";
import { headerOf } from "../proxy/end-to-end-headers.ts";
import type { Header } from "../proxy/observer.ts";
import { decodeForDisplay, type Json } from "./header-value.ts";
import { attempt } from "./read-offers.ts";

/** The receipt of an answer, and the headers that hold one. */
export interface ReadReceipts {
  receipt: ShownReceipt | undefined;
  decoded: DecodedHeader[];
}

/** Reads the receipt headers of an answer. */
export function readReceipts(headers: readonly Header[]): ReadReceipts {
  const read = [
    readX402(headers, headerName.paymentResponse, "x402 v2"),
    readX402(headers, headerName.paymentResponseV1, "x402 v1"),
    readMpp(headers),
  ].filter((each) => each !== undefined);
  return {
    receipt: read.find(({ receipt }) => receipt !== undefined)?.receipt,
    decoded: read.map(({ decoded }) => decoded),
  };
}

interface ReadReceipt {
  receipt?: ShownReceipt;
  decoded: DecodedHeader;
}

function readX402(
  headers: readonly Header[],
  header: string,
  wire: "x402 v1" | "x402 v2",
): ReadReceipt | undefined {
  const value = headerOf(headers, header);
  if (value === undefined) return undefined;
  const named: DecodedHeader = { header, side: "answer", wire, ...shown(value) };
  const read = attempt(() => decodeReceipt(value));
  if (!read.ok) return { decoded: { ...named, fault: read.fault } };
  const { success, transaction, network, errorReason } = read.value;
  const receipt: ShownReceipt = { wire, success, network };
  if (transaction !== "") receipt.transaction = transaction;
  if (errorReason !== undefined) receipt.reason = errorReason;
  return { receipt, decoded: named };
}

function readMpp(headers: readonly Header[]): ReadReceipt | undefined {
  const header = headerName.paymentReceipt;
  const value = headerOf(headers, header);
  if (value === undefined) return undefined;
  const named: DecodedHeader = { header, side: "answer", wire: "MPP", ...shown(value) };
  const read = attempt(() => decodePaymentReceipt(value));
  if (!read.ok) return { decoded: { ...named, fault: read.fault } };
  const { reference, chainId } = read.value;
  const receipt: ShownReceipt = { wire: "MPP", success: true, transaction: reference };
  if (chainId !== undefined) receipt.network = `eip155:${chainId}`;
  return { receipt, decoded: named };
}

function shown(value: string): { value?: Json } {
  const json = decodeForDisplay(value);
  return json === undefined ? {} : { value: json };
}

const words = z.string().min(1).max(1024).optional().catch(undefined);
const refusalSchema = z.object({ error: words, errorReason: words, detail: words, title: words });

/** Reads the seller's reason for a refusal: a code, and its words where it has some. */
export function readRefusal(
  body: Json | undefined,
  receipt: ShownReceipt | undefined,
): { reason: string; says?: string } | undefined {
  const read = refusalSchema.safeParse(body);
  const { error, errorReason, detail, title } = read.success ? read.data : {};
  const reason = error ?? receipt?.reason ?? errorReason ?? title ?? detail;
  if (reason === undefined) return undefined;
  return detail === undefined || detail === reason ? { reason } : { reason, says: detail };
}
