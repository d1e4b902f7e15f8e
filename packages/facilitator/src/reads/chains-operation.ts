import { getChainPreset } from "@coinslot/chain";
import { chainIdOf, type Network } from "@coinslot/protocol";
import { type SqlBool, sql } from "kysely";
import * as z from "zod";
import { accounts } from "../ledger/books-schema.ts";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { readDatabaseNow } from "../ledger/queries/common-time.ts";
import { defineOperation } from "../operators/operation.ts";
import type { ChainView, SellerView } from "./seller-view.ts";
import { isoOfNode } from "./wire-forms.ts";

const hourMs = 3_600_000;
const maxCounted = 10_000;

const endpointSchema = z.object({
  /** Its place among the configured ones, as the log names it. */
  endpoint: z.number(),
  /** The last two labels of its host: the rest of its URL is a secret. */
  host: z.string(),
  /** `unchecked`, `ready`, `resting` or `wrong-chain`. */
  state: z.string(),
  head: z.number().nullable(),
  isLagging: z.boolean(),
  latencyMs: z.number().nullable(),
  lastFailure: z.string().nullable(),
  /** HTTP requests since the start of the process, and those that failed. */
  requests: z.number(),
  failures: z.number(),
  /** From 0 to 1. */
  errorRate: z.number().nullable(),
});

const chainSchema = z.object({
  network: z.string(),
  name: z.string(),
  /** `null` where no running seller was asked. */
  head: z.object({ number: z.number(), at: z.string() }).nullable(),
  /** Age of the head, by the process's clock. */
  lagSeconds: z.number().nullable(),
  isReachable: z.boolean().nullable(),
  isStalled: z.boolean().nullable(),
  endpoints: z.array(endpointSchema),
  /** Confirmed payments that are not final, counted up to 10,000. */
  notFinal: z.number(),
  /** Payments whose block left the chain in the last hour. */
  reverted: z.number(),
  /** The same since the start of the process; `null` where no running seller was asked. */
  revertedSinceStart: z.number().nullable(),
});

export const chainsListResult = z.object({
  /** `ledger`: no running seller was asked, and heads and endpoints are not known. */
  source: z.enum(["seller", "ledger"]),
  chains: z.array(chainSchema),
});

/** The chains of a ledger. */
export type ChainsList = z.infer<typeof chainsListResult>;

/** Every chain of the ledger: its head, endpoints and reorganisations. */
export const listChainsOperation = defineOperation({
  name: "chains.list",
  access: "read",
  asksSeller: true,
  argument: z.strictObject({}),
  result: chainsListResult,
  run: (reads, _, seller) => readChains(reads, seller),
});

/** Reads the chains, with the facts of the running process where there is one. */
export async function readChains(
  reads: LedgerReads,
  seller: SellerView | undefined,
): Promise<ChainsList> {
  const views = (await seller?.chains()) ?? [];
  return inSnapshot(reads, async (snapshot) => {
    const { db } = snapshot;
    const rows = await db.selectFrom("chains").select("network").execute();
    const networks = new Set([...views, ...rows].map(({ network }) => network));
    const reverted = await countReverted(snapshot);
    const chains: ChainsList["chains"] = [];
    for (const network of [...networks].sort()) {
      chains.push({
        network,
        name: getChainPreset(chainIdOf(network)).name,
        ...factsOf(views.find((view) => view.network === network)),
        notFinal: await countNotFinal(snapshot, network),
        reverted: reverted.get(network) ?? 0,
      });
    }
    return { source: seller === undefined ? "ledger" : "seller", chains };
  });
}

function factsOf(view: ChainView | undefined) {
  const { head, endpoints = [] } = view ?? {};
  const at = head && head.timestamp * 1_000;
  return {
    head: head && at !== undefined ? { number: head.number, at: isoOfNode(at) } : null,
    lagSeconds: at === undefined ? null : Math.max(0, Math.round((Date.now() - at) / 1_000)),
    isReachable: view?.isReachable ?? null,
    isStalled: view?.isStalled ?? null,
    revertedSinceStart: view?.reorganised ?? null,
    endpoints: endpoints.map(({ head: of, latencyMs, lastFailure, ...endpoint }) => ({
      ...endpoint,
      head: of ?? null,
      latencyMs: latencyMs === undefined ? null : Math.round(latencyMs),
      lastFailure: lastFailure ?? null,
      errorRate: endpoint.requests === 0 ? null : endpoint.failures / endpoint.requests,
    })),
  };
}

/** By the index of what is not final. */
async function countNotFinal({ db }: LedgerReads, network: Network): Promise<number> {
  const row = await db
    .selectFrom(
      db
        .selectFrom("payments")
        .select("block_number")
        .where("network", "=", network)
        .where(sql<SqlBool>`state = 'confirmed' and final_at is null`)
        .limit(maxCounted)
        .as("open"),
    )
    .select((select) => select.fn.countAll().as("count"))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

/** Reversals in the books, along their times: all entries of an hour are read. */
async function countReverted(reads: LedgerReads): Promise<Map<Network, number>> {
  const { db } = reads;
  const since = (await readDatabaseNow(reads)) - hourMs;
  const rows = await db
    .selectFrom("book_entries")
    .select(["network", (select) => select.fn.countAll().as("count")])
    .where("posted_at", ">=", since)
    .where("debit", "=", accounts.income)
    .where("credit", "=", accounts.wallet)
    .groupBy("network")
    .execute();
  return new Map(rows.map(({ network, count }) => [network, Number(count)]));
}
