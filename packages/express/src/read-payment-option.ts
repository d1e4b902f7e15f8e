import { type Address, type Network, networkSchema } from "@coinslot/protocol";
import type { Request } from "express";
import { isRecord } from "./is-record.ts";
import type { MaybePromise } from "./maybe-promise.ts";
import type { TokenPrice } from "./payment-routes.ts";
import { readPayTo } from "./read-pay-to.ts";
import { readPrice } from "./read-price.ts";

/** A function of the seller's, asked once for each request; what it returns is read then. */
export type AskSeller = (request: Request) => MaybePromise<unknown>;

/** A way to pay, read. */
export interface PaymentTerms {
  network: Network;
  price: TokenPrice | AskSeller;
  payTo: Address | AskSeller;
}

/**
 * Reads a way to pay, and tells every problem.
 *
 * @returns `undefined` when there is a problem.
 */
export function readPaymentOption(
  option: unknown,
  tell: (problem: string) => void,
): PaymentTerms | undefined {
  if (!isRecord(option)) {
    tell(" must be an object");
    return undefined;
  }
  if (option.scheme !== "exact") tell('.scheme must be "exact"');
  const network = networkSchema.safeParse(option.network);
  if (!network.success) {
    tell('.network must be an EVM chain in CAIP-2 form, such as "eip155:9745"');
    return undefined;
  }
  const price = readPriceOption(option.price, network.data, tell);
  const payTo = readPayToOption(option.payTo, tell);
  if (price === undefined || payTo === undefined) return undefined;
  return { network: network.data, price, payTo };
}

function readPriceOption(
  price: unknown,
  network: Network,
  tell: (problem: string) => void,
): TokenPrice | AskSeller | undefined {
  if (isFunction(price)) return price;
  const read = readPrice(price, network);
  if (read.ok) return read.price;
  tell(`.price ${read.problem}`);
  return undefined;
}

function readPayToOption(
  payTo: unknown,
  tell: (problem: string) => void,
): Address | AskSeller | undefined {
  if (isFunction(payTo)) return payTo;
  const read = readPayTo(payTo);
  if (read.ok) return read.payTo;
  tell(`.payTo ${read.problem}`);
  return undefined;
}

function isFunction(value: unknown): value is AskSeller {
  return typeof value === "function";
}
