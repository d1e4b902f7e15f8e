import { type Network, symbolOf } from "@coinslot/protocol";
import {
  findAsset,
  inBucket,
  type SpendableAsset,
  showInBucket,
} from "../budget/spending-policy.ts";
import type { OfferedWay, Protocol } from "../wires/wire.ts";
import type { Refusal, RefusalCode } from "./offer-refused-error.ts";

/** An entry of an offer that this payer may pay, if it has the funds and room in its budget. */
export interface Candidate {
  way: OfferedWay;
  /** The budget's data on the asset; the offer's data is only compared with it. */
  asset: SpendableAsset;
  /** In the token's smallest unit. */
  amount: bigint;
}

/**
 * Sorts the entries of an offer into payable ones, best first, and refused ones. The order is that
 * of the protocols, and within one that of the assets in the budget. Among all that count in
 * dollars, the cheapest comes first. Sends no request.
 */
export function chooseRequirements(options: {
  ways: readonly OfferedWay[];
  /** The protocols in which this payer pays, in order of preference. */
  protocols: readonly Protocol[];
  /** The assets of the budget, in order of preference. */
  assets: readonly SpendableAsset[];
  /** Networks on which this payer can look at its funds. */
  networks: ReadonlySet<Network>;
}): { candidates: Candidate[]; refusals: Refusal[] } {
  const { ways, protocols, assets, networks } = options;
  const candidates: Candidate[] = [];
  const refusals: Refusal[] = [];
  for (const way of ways) {
    const examined = examine(way, assets, networks);
    if ("code" in examined) refusals.push(examined);
    else candidates.push(examined);
  }
  const rankOfProtocol = ({ way }: Candidate) => protocols.indexOf(way.protocol);
  const rankOfPot = ({ asset }: Candidate) => assets.findIndex(({ pot }) => pot === asset.pot);
  const rankOfAsset = ({ asset }: Candidate) => assets.indexOf(asset);
  candidates.sort(
    (a, b) =>
      rankOfProtocol(a) - rankOfProtocol(b) ||
      rankOfPot(a) - rankOfPot(b) ||
      compare(inBucket(a.asset, a.amount), inBucket(b.asset, b.amount)) ||
      rankOfAsset(a) - rankOfAsset(b),
  );
  return { candidates, refusals };
}

/** The refusal of a candidate that was payable at first. */
export function refuse(candidate: Candidate, code: RefusalCode, message: string): Refusal {
  return toRefusal(candidate.way, code, message);
}

function examine(
  way: OfferedWay,
  assets: readonly SpendableAsset[],
  networks: ReadonlySet<Network>,
): Candidate | Refusal {
  const { network, asset: address, token, fault } = way;
  const no = (code: RefusalCode, message: string) => toRefusal(way, code, message);

  if (fault !== undefined) return no("unsupported_offer", fault);
  if (!networks.has(network)) {
    return no("unsupported_offer", `No RPC URL is configured for ${network}`);
  }
  const asset = findAsset(assets, network, address);
  if (asset === undefined) {
    return no("unknown_asset", `The budget names no asset ${address} on ${network}`);
  }
  // Other decimals make a high price look low, and another domain makes another signature. An offer
  // may leave them out: they are known.
  for (const key of ["name", "version", "decimals"] as const) {
    if (token[key] !== undefined && token[key] !== asset[key]) {
      return no(
        "asset_mismatch",
        `The offer has a wrong ${key} for ${symbolOf(asset)} on ${network}`,
      );
    }
  }
  const amount = BigInt(way.amount);
  const { limits } = asset.pot;
  if (inBucket(asset, amount) > limits.perPayment) {
    const price = showInBucket(asset.pot, inBucket(asset, amount));
    const limit = showInBucket(asset.pot, limits.perPayment);
    const message = `${price} is more than the budget allows for one payment: ${limit}`;
    return no("over_budget", message);
  }
  return { way, asset, amount };
}

function toRefusal(way: OfferedWay, code: RefusalCode, message: string): Refusal {
  const { network, asset, payTo, amount } = way;
  return { code, message, network, asset, payTo, amount: BigInt(amount) };
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
