import type { PaymentOption, PaymentRoutes, TokenPrice } from "@coinslot/express";
import { type Address, type Asset, formatMoney, type Network } from "@coinslot/protocol";
import {
  batchOf,
  historyParameters,
  historyQuery,
  ownerParameters,
  ownerQuery,
} from "./request-forms.ts";

/** Price and recipient. */
export interface Terms {
  network: Network;
  asset: Asset;
  /** For one request, or one item of a batch, in the asset's smallest unit. */
  price: bigint;
  payTo: Address;
}

/** Largest batch that the API takes. */
const maxItems = 10;

/** The longest answer that is sold: ten histories of a thousand transfers have less than 7 MB. */
export const maxAnswerBytes = 8 * 2 ** 20;

/**
 * The sold routes, in the form of the payment middleware. An unlisted route is not available at
 * all.
 */
export function soldRoutes(terms: Terms): PaymentRoutes {
  const single = { accepts: acceptOne(terms, priceOf(terms, 1)), mimeType: "application/json" };
  const batch = {
    accepts: acceptOne(terms, ({ body }) => priceOf(terms, countItems(body))),
    mimeType: "application/json",
    // A POST that only reads: when the buyer has left, nothing has happened that must be paid.
    onDisconnect: "release",
  } as const;
  const batchPrice = { min: inDollars(terms, 1), max: inDollars(terms, maxItems) };
  return {
    "GET /api/v1/:blockchain/:token/:address/token-transfers": {
      ...single,
      description: "The transfers of one token into and out of one address",
      discovery: { parameters: [...ownerParameters, ...historyParameters] },
    },
    "GET /api/v1/:blockchain/:token/:address/token-balances": {
      ...single,
      description: "The balance of one token at one address",
      discovery: { parameters: ownerParameters },
    },
    "POST /api/v1/batch/token-transfers": {
      ...batch,
      description: "Up to ten transfer histories, each at the price of one",
      discovery: { price: batchPrice, requestBody: batchOf(historyQuery, maxItems) },
    },
    "POST /api/v1/batch/token-balances": {
      ...batch,
      description: "Up to ten balances, each at the price of one",
      discovery: { price: batchPrice, requestBody: batchOf(ownerQuery, maxItems) },
    },
  };
}

function acceptOne({ network, payTo }: Terms, price: PaymentOption["price"]): PaymentOption {
  return { scheme: "exact", network, payTo, price };
}

function priceOf({ asset, price }: Terms, count: number): TokenPrice {
  const { address, name, version, decimals } = asset;
  const amount = (price * BigInt(count)).toString();
  return { amount, asset: address, extra: { name, version, decimals } };
}

/** Price of a number of items, in dollars: every token that is sold for is one. */
function inDollars({ asset, price }: Terms, count: number): string {
  return formatMoney(price * BigInt(count), asset.decimals);
}

/**
 * Number of items that a batch is charged for. Every item counts, without a maximum. The API
 * refuses too many, or no list at all, and a refusal costs nothing.
 */
function countItems(body: unknown): number {
  return Array.isArray(body) ? Math.max(1, body.length) : 1;
}
