import { addressSchema, isAmount, knownAsset, type Network, parseMoney } from "@coinslot/protocol";
import { isRecord } from "./is-record.ts";
import type { TokenPrice } from "./payment-routes.ts";

/** Either a price in a token, or what is wrong with it. */
export type ReadPrice = { ok: true; price: TokenPrice } | { ok: false; problem: string };

/** Reads a price as the seller wrote it, or as the seller's function returned it. Never rounds. */
export function readPrice(price: unknown, network: Network): ReadPrice {
  if (typeof price === "string") return readMoney(price, network);
  if (!isRecord(price)) return refuse('must be an object, or a string such as "$0.001"');
  const { amount, asset, extra } = price;
  if (typeof amount !== "string" || !isAmount(amount)) {
    return refuse(
      "amount must be a whole number of the token's smallest unit, as a decimal string",
    );
  }
  if (amount === "0") return refuse("amount is zero: a route without a price is not listed");
  const address = addressSchema.safeParse(asset);
  if (!address.success) return refuse("asset must be an address with a correct checksum");
  if (!isRecord(extra) || !isFilled(extra.name) || !isFilled(extra.version)) {
    return refuse("extra must hold the token's EIP-712 domain: { name, version }");
  }
  const { name, version, decimals } = extra;
  if (decimals !== undefined && !isDecimals(decimals)) {
    return refuse("extra.decimals must be a whole number from 0 to 255");
  }
  const domain = { name, version, ...(decimals === undefined ? {} : { decimals }) };
  return { ok: true, price: { amount, asset: address.data, extra: domain } };
}

function readMoney(price: string, network: Network): ReadPrice {
  const asset = knownAsset(network);
  if (asset === undefined) {
    return refuse(`"${price}" says no token, and none is known for ${network}: name the asset`);
  }
  const { address, name, version, decimals } = asset;
  const amount = parseMoney(price, decimals);
  if (amount === undefined) {
    return refuse(`"${price}" is no exact amount in ${decimals} decimals: a price is not rounded`);
  }
  if (amount === 0n) return refuse(`"${price}" is zero: a route without a price is not listed`);
  const extra = { name, version, decimals };
  return { ok: true, price: { amount: amount.toString(), asset: address, extra } };
}

function refuse(problem: string): ReadPrice {
  return { ok: false, problem };
}

function isFilled(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isDecimals(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 255;
}
