import { type Address, findKnownToken, formatMoney, isNetwork, symbolOf } from "@coinslot/protocol";
import * as z from "zod";

/** A time on the wire: ISO 8601, with its offset. Unix milliseconds within. */
export const timeArgument = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** A network, such as `eip155:9745`. */
export const networkArgument = z.string().refine(isNetwork, "is no network such as eip155:9745");

/** A number of rows. */
export const limitArgument = z.int().min(1).max(1_000);

/** A money amount in JSON: exact as `value`, and for people as `amount`. */
export const moneySchema = z.object({
  network: z.string(),
  /** `native` for the chain's own coin. */
  asset: z.string(),
  /** Ticker of a known token. */
  symbol: z.string().nullable(),
  /** In the smallest unit. */
  value: z.string(),
  /** In whole tokens, where the token is known. */
  amount: z.string().nullable(),
});

/** A money amount in JSON. */
export type Money = z.infer<typeof moneySchema>;

/** The form of an amount of a token. */
export function toMoney(network: Money["network"], asset: Address, value: bigint): Money {
  const token = isNetwork(network) ? findKnownToken(network, asset) : undefined;
  return {
    network,
    asset,
    symbol: token ? symbolOf(token) : null,
    value: value.toString(),
    amount: token ? formatMoney(value, token.decimals) : null,
  };
}

/** ISO 8601 of Unix milliseconds by a node, which may name any time. */
export function isoOfNode(milliseconds: number): string {
  return new Date(Math.min(milliseconds, 8_640_000_000_000_000)).toISOString();
}

/** ISO 8601 of Unix milliseconds; `null` of none. */
export function toIso(milliseconds: number | null | undefined): string | null {
  return milliseconds === undefined || milliseconds === null ? null : isoOfNode(milliseconds);
}
