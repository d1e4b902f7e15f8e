import { getChainPreset } from "@coinslot/chain";
import { chainIdOf, formatMoney, type Network } from "@coinslot/protocol";
import * as z from "zod";
import type { LedgerReads } from "../ledger/ledger-context.ts";
import { inSnapshot } from "../ledger/ledger-reads.ts";
import { readDatabaseNow } from "../ledger/queries/common-time.ts";
import { countQueued } from "../ledger/queries/find-queued.ts";
import { listRelayers } from "../ledger/queries/list-relayers.ts";
import { sortableIdAt } from "../ledger/sortable-id.ts";
import { findHighestNonce } from "../ledger/transactions/find-transactions.ts";
import { defineOperation } from "../operators/operation.ts";
import type { RelayerView, SellerView } from "./seller-view.ts";

const dayMs = 86_400_000;
const maxQueued = 10_000;

const relayerSchema = z.object({
  network: z.string(),
  relayer: z.string(),
  /** `active`, `retiring`, `keyless` or `retired`. */
  state: z.string(),
  /** Ticker of the chain's coin. */
  symbol: z.string(),
  /** In wei. `null` where no running seller with its key was asked, or before its first read. */
  balance: z.string().nullable(),
  /** In whole coins. */
  amount: z.string().nullable(),
  /** Below `warningBalance`. */
  isLow: z.boolean().nullable(),
  /** Below `minimumBalance`: it takes no new payments. */
  isExhausted: z.boolean().nullable(),
  minimumBalance: z.string().nullable(),
  warningBalance: z.string().nullable(),
  /** Gas of the last 24 hours, in wei. */
  burnPerDay: z.string(),
  /** `null` without burn, or without a balance. */
  daysLeft: z.number().nullable(),
  /** Payments of its network that wait for a transaction, counted up to 10,000. */
  queued: z.number(),
  inFlight: z.number(),
  /** The nonce after the highest one of the ledger. */
  nextNonce: z.number().nullable(),
  /** `timeout`, `failed` or `wrong`, while its signer rests. */
  signerFault: z.string().nullable(),
});

export const relayersListResult = z.object({
  /** `ledger`: no running seller was asked, and balances are not known. */
  source: z.enum(["seller", "ledger"]),
  relayers: z.array(relayerSchema),
});

/** The relayers of a ledger. */
export type RelayersList = z.infer<typeof relayersListResult>;

/** Every relayer of the ledger: its gas money, and what is in flight from it. */
export const listRelayersOperation = defineOperation({
  name: "relayers.list",
  access: "read",
  asksSeller: true,
  argument: z.strictObject({}),
  result: relayersListResult,
  run: (reads, _, seller) => readRelayers(reads, seller),
});

/** Reads the relayers, with the facts of the running process where there is one. */
export function readRelayers(
  reads: LedgerReads,
  seller: SellerView | undefined,
): Promise<RelayersList> {
  return inSnapshot(reads, async (snapshot) => {
    const known = await listRelayers(snapshot);
    const views = seller?.relayers() ?? [];
    const burnt = await sumBurn(snapshot);
    const queued = new Map<Network, number>();
    const relayers: RelayersList["relayers"] = [];
    for (const { network, relayer, state, inFlight } of known) {
      const waiting =
        queued.get(network) ?? (await countQueued(snapshot, { network, upTo: maxQueued }));
      queued.set(network, waiting);
      const view = views.find((each) => each.network === network && each.relayer === relayer);
      const burn = burnt.get(`${network}/${relayer}`) ?? 0n;
      const nonce = await findHighestNonce(snapshot, { network, relayer });
      relayers.push({
        ...{ network, relayer, state, inFlight, queued: waiting },
        ...fundsOf(network, view, burn),
        burnPerDay: burn.toString(),
        nextNonce: nonce === undefined ? null : nonce + 1,
        signerFault: view?.signerFault ?? null,
      });
    }
    return { source: seller === undefined ? "ledger" : "seller", relayers };
  });
}

function fundsOf(network: Network, view: RelayerView | undefined, burn: bigint) {
  const { symbol, decimals } = getChainPreset(chainIdOf(network)).nativeCurrency;
  const { balance, minimumBalance, warningBalance } = view ?? {};
  const isBelow = (bound: bigint | undefined) =>
    balance === undefined || bound === undefined ? null : balance < bound;
  return {
    symbol,
    balance: balance?.toString() ?? null,
    amount: balance === undefined ? null : formatMoney(balance, decimals),
    isLow: isBelow(warningBalance),
    isExhausted: isBelow(minimumBalance),
    minimumBalance: minimumBalance?.toString() ?? null,
    warningBalance: warningBalance?.toString() ?? null,
    daysLeft: balance === undefined || burn === 0n ? null : Number((balance * 10n) / burn) / 10,
  };
}

/** Gas costs of the transactions of a day, by relayer: along their ids, which begin with a time. */
async function sumBurn(reads: LedgerReads): Promise<Map<string, bigint>> {
  const { db, dialect } = reads;
  const since = (await readDatabaseNow(reads)) - dayMs;
  const rows = await db
    .selectFrom("transactions")
    .select(["network", "relayer"])
    .select((select) => dialect.amount.sum(select.ref("gas_cost")).as("cost"))
    .where("id", ">=", sortableIdAt(since))
    .groupBy(["network", "relayer"])
    .execute();
  return new Map(
    rows.map(({ network, relayer, cost }) => [
      `${network}/${relayer}`,
      dialect.amount.decode(cost),
    ]),
  );
}
