import type { Address, Network } from "@coinslot/protocol";
import { Counter, type Registry } from "prom-client";

/** Finds names of `sold_names` by their ids. */
type FindNames = (ids: readonly number[]) => Promise<ReadonlyMap<number, string>>;

/** The sale that an amount belongs to, and its route as a name of `sold_names`. */
interface SaleKey {
  network: Network;
  asset: Address;
  routeId: number | null;
}

/** Metrics of money, as this process has recorded it. */
export interface MoneyMetrics {
  income(sale: SaleKey, amount: bigint): void;
  refunded(refund: { network: Network; asset: Address; route: string }, amount: bigint): void;
  /** Part of a transaction's gas for a sale, in wei. */
  gasShare(sale: SaleKey, wei: bigint): void;
  /** Gas of a transaction, in wei. */
  gas(by: { network: Network; relayer: Address }, wei: bigint): void;
  /**
   * Sets the source of names, which a scrape asks for those that it does not know. With another
   * ledger, ids mean other names from then on.
   */
  nameRoutes(find: FindNames): void;
}

interface Sum extends SaleKey {
  /** Number of the ledger that its id is of. */
  ledger: number;
  amount: bigint;
}

/** Bound of the sums of one metric: a caller of a hosted facilitator may pay with many tokens. */
const maxSums = 2_000;

/**
 * Creates the metrics of money. Sums are whole numbers in memory, filled into a counter at a
 * scrape: a label would cost a request more than the addition.
 */
export function createMoneyMetrics(registry: Registry): MoneyMetrics {
  const registers = [registry];
  const names = new Map<string, string>();
  let ledger = 0;
  let find: FindNames | undefined;

  const nameOf = (sum: Sum) =>
    sum.routeId === null ? "" : names.get(`${sum.ledger} ${sum.routeId}`);

  /** A sum without its name waits for the next scrape: a counter never goes back. */
  async function learn(sums: Iterable<Sum>): Promise<void> {
    const asked = ledger;
    const missing = [...sums].flatMap((sum) =>
      sum.routeId !== null && sum.ledger === asked && nameOf(sum) === undefined ? sum.routeId : [],
    );
    if (missing.length === 0 || find === undefined) return;
    const found = await find([...new Set(missing)]).catch(() => new Map<number, string>());
    for (const [id, name] of found) names.set(`${asked} ${id}`, name);
  }

  function bySale(name: string, help: string): (sale: SaleKey, amount: bigint) => void {
    const sums = new Map<string, Sum>();
    new Counter({
      name,
      help,
      labelNames: ["network", "asset", "route"] as const,
      registers,
      async collect() {
        await learn(sums.values());
        this.reset();
        for (const sum of sums.values()) {
          const { network, asset, amount } = sum;
          const route = nameOf(sum);
          if (route !== undefined) this.inc({ network, asset, route }, Number(amount));
        }
      },
    });
    return ({ network, asset, routeId }, amount) => {
      const key = `${ledger} ${network} ${asset} ${routeId}`;
      const sum = sums.get(key);
      if (sum !== undefined) sum.amount += amount;
      else if (sums.size < maxSums) sums.set(key, { ledger, network, asset, routeId, amount });
    };
  }

  const refunded = new Counter({
    name: "coinslot_refunded_units_total",
    help: "Tokens given back, in the smallest unit, by the route of the sale",
    labelNames: ["network", "asset", "route"] as const,
    registers,
  });
  const gas = new Counter({
    name: "coinslot_gas_wei_total",
    help: "Gas of transactions in blocks, in wei",
    labelNames: ["network", "relayer"] as const,
    registers,
  });
  return {
    income: bySale(
      "coinslot_income_units_total",
      "Tokens of confirmed sales, in the smallest unit",
    ),
    gasShare: bySale("coinslot_gas_share_wei_total", "The part of the gas for sales, in wei"),
    refunded: (labels, amount) => refunded.inc(labels, Number(amount)),
    gas: (labels, wei) => gas.inc(labels, Number(wei)),
    nameRoutes(source) {
      find = source;
      ledger += 1;
    },
  };
}
