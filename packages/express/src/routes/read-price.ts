import {
  isAmount,
  isWellFormedAddress,
  knownAsset,
  type Network,
  type PaymentFlow,
  parseMoney,
} from "@coinslot/protocol";
import { isRecord } from "../is-record.ts";
import type { TokenPrice } from "./payment-routes.ts";
import { readExtra } from "./read-extra.ts";

/** Either a price in a token, or its problem. */
export type ReadPrice =
  | { ok: true; price: TokenPrice }
  | { ok: false; problems: readonly string[] };

/** Settings of a route beside its price, on which the price depends. */
export interface PriceContext {
  network: Network;
  paymentFlow: PaymentFlow;
  /** Added to the price's own, and above it. */
  extra: Record<string, unknown>;
}

const members = new Set(["amount", "asset", "extra"]);

/** Reads a price as the seller wrote it, or as the seller's function returned it. Never rounds. */
export function readPrice(price: unknown, context: PriceContext): ReadPrice {
  if (typeof price === "string" || typeof price === "number") {
    return readMoney(String(price), context);
  }
  if (!isRecord(price)) return refuse('must be an object, or a string such as "$0.001"');
  const problems: string[] = [];
  for (const name of Object.keys(price)) {
    if (!members.has(name)) problems.push(`has an unknown member: ${name}`);
  }
  const { amount, asset } = price;
  const own = readExtra(price.extra, context.paymentFlow);
  const extra = { ...(own.ok ? own.extra : {}), ...context.extra };
  const { name, version } = extra;
  const isWhole = typeof amount === "string" && isAmount(amount);
  if (!isWhole) {
    problems.push(
      "amount must be a whole number of the token's smallest unit, as a decimal string",
    );
  }
  if (amount === "0") problems.push("amount is zero: a route without a price is not listed");
  const isAddress = typeof asset === "string" && isWellFormedAddress(asset);
  if (!isAddress) problems.push("asset must be an address with a correct checksum");
  const isNamed = isFilled(name) && isFilled(version);
  if (!own.ok) problems.push(...own.problems.map(onExtra));
  else if (!isNamed) {
    problems.push("extra must hold the token's EIP-712 domain: { name, version }");
  }
  if (problems.length > 0 || !isWhole || !isAddress || !isNamed) return { ok: false, problems };
  return { ok: true, price: { amount, asset, extra: { ...extra, name, version } } };
}

/** A problem of `extra`, in the words of its container. */
export function onExtra(problem: string): string {
  return problem.startsWith(".") ? `extra${problem}` : `extra ${problem}`;
}

function readMoney(price: string, { network, extra }: PriceContext): ReadPrice {
  const asset = knownAsset(network);
  if (asset === undefined) {
    return refuse(`"${price}" names no token, and ${network} has no known one: name the asset`);
  }
  const { address, name, version, decimals } = asset;
  const amount = parseMoney(price, decimals);
  if (amount === undefined) {
    return refuse(`"${price}" is no exact amount in ${decimals} decimals: a price is not rounded`);
  }
  if (amount === 0n) return refuse(`"${price}" is zero: a route without a price is not listed`);
  const domain = { ...extra, name, version, decimals };
  return { ok: true, price: { amount: amount.toString(), asset: address, extra: domain } };
}

function refuse(problem: string): ReadPrice {
  return { ok: false, problems: [problem] };
}

function isFilled(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
