import {
  type Address,
  type Asset,
  findKnownToken,
  formatMoney,
  isNetwork,
  isSameAddress,
  isWellFormedAddress,
  knownChains,
  type Network,
  parseMoney,
} from "@coinslot/protocol";

/**
 * Spending limits. A day is a rolling one: the bookings of the last 24 hours, counted by the hour.
 */
export interface Budget {
  /** Most for one payment in dollars. Default `"$0.10"`. */
  perPayment?: string | undefined;
  /** Most in a day at one host name, in dollars. Default `"$1"`. */
  perHost?: string | undefined;
  /** Most in a day, in dollars. Default `"$5"`. */
  perDay?: string | undefined;
  /**
   * Tokens that may be spent, best first; no other is. Default: the dollar stablecoins of every
   * known chain (`knownChains` of @coinslot/protocol), USDT0 on Plasma first.
   */
  assets?: readonly BudgetAsset[] | undefined;
  /**
   * A file that keeps the bookings over restarts, and between processes that share it. Without one,
   * every `createPayingFetch` counts for itself and in memory.
   */
  file?: string | undefined;
}

/**
 * A token that may be spent. It counts in dollars, together with all others that do, or has limits
 * of its own. A dollar stablecoin unknown to this package is marked by `isDollar`.
 */
export interface BudgetAsset extends Asset {
  network: Network;
  isDollar?: true | undefined;
  limits?: SpendingLimits | undefined;
}

/** Limits in the smallest unit of their bucket. */
export interface SpendingLimits {
  perPayment: bigint;
  perHost: bigint;
  perDay: bigint;
  /** Most in escrow of payment channels that is not charged. Default: `perHost` and `perDay`. */
  locked?: { perHost: bigint; inAll: bigint } | undefined;
}

/** A group of spending with shared limits. */
export interface BudgetBucket {
  /** `"usd"`, or `<network>/<asset>` for a token with limits of its own. */
  name: string;
  decimals: number;
  limits: SpendingLimits;
}

/** A token that may be spent, and its bucket. */
export interface SpendableAsset extends Asset {
  network: Network;
  pot: BudgetBucket;
}

const dollarDecimals = 18;
const defaultAssets: readonly BudgetAsset[] = knownChains
  .filter(({ isTestnet }) => isTestnet !== true)
  .flatMap(({ network, tokens }) => tokens.map((token) => ({ network, ...token })));

/** Reads a budget and adds its faults to `problems`. The assets come in order of preference. */
export function readBudget(budget: Budget, problems: string[]): SpendableAsset[] {
  const dollarBucket: BudgetBucket = {
    name: "usd",
    decimals: dollarDecimals,
    limits: readDollarLimits(budget, problems),
  };
  checkLimits("budget", dollarBucket, problems);
  return (budget.assets ?? defaultAssets).map((asset, index) => {
    const at = `budget.assets[${index}]`;
    checkAsset(at, asset, problems);
    const pot = asset.limits === undefined ? dollarBucket : ownBucket(asset, asset.limits);
    if (pot !== dollarBucket) checkLimits(`${at}.limits`, pot, problems);
    const { network, address, name, version, decimals, symbol } = asset;
    return { network, address, name, version, decimals, symbol, pot };
  });
}

/** The asset under an address, if it may be spent. */
export function findAsset(
  assets: readonly SpendableAsset[],
  network: Network,
  address: Address,
): SpendableAsset | undefined {
  return assets.find((asset) => asset.network === network && isSameAddress(asset.address, address));
}

/** An amount of an asset in the unit of its bucket, rounded up. */
export function inBucket(asset: SpendableAsset, amount: bigint): bigint {
  const shift = asset.pot.decimals - asset.decimals;
  if (shift >= 0) return amount * 10n ** BigInt(shift);
  const divisor = 10n ** BigInt(-shift);
  return (amount + divisor - 1n) / divisor;
}

/** An amount in the unit of a bucket, for people: `"$0.10"`, or a plain number of tokens. */
export function showInBucket(pot: BudgetBucket, amount: bigint): string {
  return `${pot.name === "usd" ? "$" : ""}${formatMoney(amount, pot.decimals)}`;
}

function readDollarLimits(budget: Budget, problems: string[]): SpendingLimits {
  const read = (key: "perPayment" | "perHost" | "perDay"): bigint | undefined => {
    const text = budget[key];
    if (text === undefined) return undefined;
    const amount = text.startsWith("$") ? parseMoney(text, dollarDecimals) : undefined;
    if (amount === undefined) problems.push(`budget.${key} is not an amount such as "$0.10"`);
    return amount;
  };
  const given = {
    perPayment: read("perPayment"),
    perHost: read("perHost"),
    perDay: read("perDay"),
  };
  // A default gives way to a tighter limit, never to a looser one.
  const perDay = given.perDay ?? dollars("$5");
  const perHost = given.perHost ?? least(dollars("$1"), perDay);
  const perPayment = given.perPayment ?? least(dollars("$0.10"), perHost);
  return { perPayment, perHost, perDay };
}

function dollars(text: string): bigint {
  return parseMoney(text, dollarDecimals) ?? 0n;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function ownBucket(asset: BudgetAsset, limits: SpendingLimits): BudgetBucket {
  const name = `${asset.network}/${asset.address.toLowerCase()}`;
  return { name, decimals: asset.decimals, limits };
}

function checkLimits(at: string, pot: BudgetBucket, problems: string[]): void {
  const { perPayment, perHost, perDay, locked } = pot.limits;
  // Each comparison with a limit that is missing, or NaN, is false: it would bound nothing.
  const given = {
    perPayment,
    perHost,
    perDay,
    ...(locked && { "locked.perHost": locked.perHost, "locked.inAll": locked.inAll }),
  };
  const wrong = Object.entries(given).flatMap(([name, limit]) =>
    typeof limit === "bigint" && limit >= 0n ? [] : name,
  );
  problems.push(...wrong.map((name) => `${at}.${name} must be a bigint, not negative`));
  if (wrong.length > 0) return;
  const show = (amount: bigint) => showInBucket(pot, amount);
  // A limit that another one makes unreachable is a mistake in one of the two.
  if (perPayment > perHost) {
    problems.push(`${at}.perPayment ${show(perPayment)} is above perHost ${show(perHost)}`);
  }
  if (perHost > perDay) {
    problems.push(`${at}.perHost ${show(perHost)} is above perDay ${show(perDay)}`);
  }
  if (locked !== undefined && locked.perHost > locked.inAll) {
    problems.push(
      `${at}.locked.perHost ${show(locked.perHost)} is above inAll ${show(locked.inAll)}`,
    );
  }
}

function checkAsset(at: string, asset: BudgetAsset, problems: string[]): void {
  if (!isNetwork(asset.network)) problems.push(`${at}.network is not eip155:<chain id>`);
  if (!isWellFormedAddress(asset.address)) problems.push(`${at}.address is not a valid address`);
  if (!Number.isInteger(asset.decimals) || asset.decimals < 0 || asset.decimals > 255) {
    problems.push(`${at}.decimals is not an integer from 0 to 255`);
  }
  if (asset.isDollar && asset.limits) problems.push(`${at} has both isDollar and limits`);
  const known = findKnownToken(asset.network, asset.address);
  if (known) {
    for (const key of ["name", "version", "decimals"] as const) {
      if (asset[key] !== known[key]) problems.push(`${at}.${key} is known to be ${known[key]}`);
    }
  } else if (!asset.isDollar && !asset.limits) {
    problems.push(`${at} needs limits of its own, or isDollar: true if it is a dollar stablecoin`);
  }
}
