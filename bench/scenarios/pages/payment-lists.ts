import { withDatabase } from "@coinslot/devnet";
import type { ConsolePage } from "../../support/console-page.ts";
import type { Figure } from "../../support/figure.ts";
import { knownRoute } from "../../support/fill-sold-names.ts";
import { percentile, timeEach } from "../../support/measure.ts";
import { daysOfHistory } from "../growth/fill-ledger.ts";
import { dayMs } from "../growth/large-ledger.ts";

/** Reads of each kind, after a few that warm up. */
const count = 40;
const warmUp = 5;
/** A page is usable so soon after it is asked for. */
const goal = { of: "ours", atMost: 100 } as const;

type Argument = Record<string, unknown>;

/** Lists and searches of payments, as the console's page asks for them over HTTP. */
export async function readPayments(url: string, page: ConsolePage): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, arguments_] of Object.entries(await readsOf(url))) {
    const times = await timeEach(arguments_, async (argument) => {
      await page.run("payments.list", { limit: 50, ...argument });
    });
    const measured = times.slice(warmUp);
    const p99 = percentile(measured, 0.99);
    figures.push({
      scenario: `payments: ${name}, p50`,
      ours: { value: percentile(measured, 0.5), unit: "ms", note: `p99 ${p99.toFixed(1)} ms` },
      goal,
    });
  }
  return figures;
}

/** The arguments of each kind of read, each of another payment. */
async function readsOf(url: string): Promise<Record<string, readonly Argument[]>> {
  const { kept, archived } = await sample(url);
  const repeated = (argument: Argument) => Array.from({ length: count + warmUp }, () => argument);
  const deep = Array.from({ length: count + warmUp }, (_, index) => ({
    cursor: cursorAt(Date.now() - (daysOfHistory - 1 - index / count) * dayMs),
  }));
  const by = (found: readonly Sample[], name: keyof Sample) =>
    found.map((each) => ({ search: each[name] }));
  return {
    "first page": repeated({}),
    "deep page": deep,
    "first page of failed ones": repeated({ state: "failed" }),
    "first page of a route": repeated({ route: knownRoute }),
    "first page of a wire that no payment has": repeated({ wire: "mpp" }),
    "search by id": by(kept, "id"),
    "search by id, archived": by(archived, "id"),
    "search by nonce": by(kept, "nonce"),
    "search by nonce, archived": by(archived, "nonce"),
    "search by transaction": by(kept, "transaction"),
    "search by transaction, archived": by(archived, "transaction"),
    "search by payer": by(kept, "payer"),
    "search by token": by(kept, "asset"),
    "search by recipient": by(kept, "recipient"),
    "search by route": repeated({ search: knownRoute }),
    "search by a part of a route": repeated({ search: knownRoute.slice(-3) }),
    "search by a part of all routes": repeated({ search: "reports" }),
    "search by an unknown hash": kept.map((_, index) => ({
      search: `0x${String(index).padStart(64, "0")}`,
    })),
  };
}

interface Sample {
  id: string;
  nonce: string;
  transaction: string;
  payer: string;
  asset: string;
  recipient: string;
}

/** Confirmed payments from all over both tables. */
async function sample(url: string): Promise<{ kept: Sample[]; archived: Sample[] }> {
  return withDatabase(url, async ({ read }) => {
    const [named] = await read("select name from sold_names where name like '0x%'");
    const recipient = String(named?.name);
    const take = async (table: string) => {
      const [range] = await read(
        `select min(created_at) as first, max(created_at) as last from ${table}`,
      );
      const [first, last] = [Number(range?.first), Number(range?.last)];
      const found: Sample[] = [];
      for (let index = 0; index < count + warmUp; index += 1) {
        const from = cursorAt(first + ((last - first) * index) / (count + warmUp));
        const [row] = await read(`
          select id, nonce, transaction_hash as hash, payer, asset from ${table}
          where id > '${from}' and state = 'confirmed' order by id limit 1`);
        if (row === undefined) throw new Error(`No payment in ${table} after ${from}.`);
        found.push({
          id: String(row.id),
          nonce: hexOf(row.nonce),
          transaction: hexOf(row.hash),
          payer: hexOf(row.payer),
          asset: hexOf(row.asset),
          recipient,
        });
      }
      return found;
    };
    return { kept: await take("payments"), archived: await take("archived_payments") };
  });
}

/** Ids begin with their time. */
function cursorAt(time: number): string {
  return Math.floor(time).toString(16).padStart(12, "0").padEnd(44, "0");
}

/** Archived payments have bytes, others text. */
function hexOf(value: unknown): string {
  return value instanceof Uint8Array ? `0x${Buffer.from(value).toString("hex")}` : String(value);
}
