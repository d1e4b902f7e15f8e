import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDevnet, startPostgres } from "@coinslot/devnet";
import { bundleProgram } from "@coinslot/devnet/bundle-program";
import { openLedger } from "../../../packages/facilitator/src/ledger/open-ledger.ts";
import { openConsolePage } from "../../support/console-page.ts";
import type { Figure } from "../../support/figure.ts";
import { fillSoldNames } from "../../support/fill-sold-names.ts";
import { startSellerProcess } from "../../support/seller.ts";
import { fundPayers, requirementsOf } from "../../support/signed-payments.ts";
import { fillLedger } from "../growth/fill-ledger.ts";
import type { Engine } from "../growth/large-ledger.ts";
import { measureArchiveIndexes } from "./archive-indexes.ts";
import { showInBrowser } from "./in-browser.ts";
import { payBesideConsole } from "./open-console.ts";
import { readPayments } from "./payment-lists.ts";

const rows = Number(process.env.BENCH_LEDGER_ROWS ?? 1_000_000);
const consoleKey = "console-of-the-bench".padEnd(40, "0");

/** A console on a seller's large ledger: its lists and searches, and its cost to the seller. */
export async function consoleOnLedger(engine: Engine): Promise<Figure[]> {
  const devnet = await startDevnet({ accountCount: 44 });
  const folder = await mkdtemp(join(tmpdir(), "coinslot-bench-"));
  const postgres = engine === "postgres" ? await startPostgres() : undefined;
  try {
    await fundPayers(devnet);
    const ledger = (await postgres?.createDatabase())?.url ?? `sqlite:${join(folder, "ledger.db")}`;
    await (await openLedger({ url: ledger, processId: "creates" })).close();
    await fillLedger(ledger, devnet, rows);
    await fillSoldNames(ledger, devnet.accounts.seller.address);
    const figures = await measureArchiveIndexes(ledger);
    const source = new URL("../../support/seller-process.ts", import.meta.url);
    const seller = await startSellerProcess(
      await bundleProgram(source, folder, { minifies: true }),
      {
        kind: "ours",
        rpcUrl: devnet.rpcUrl,
        chainId: devnet.chainId,
        relayer: { privateKey: devnet.accounts.relayer.privateKey },
        ledger,
        requirements: requirementsOf(devnet),
        consoleKey,
      },
    );
    try {
      const { consoleUrl } = seller;
      if (consoleUrl === undefined) throw new Error("The seller has no console.");
      const page = await openConsolePage(consoleUrl, consoleKey);
      figures.push(...(await readPayments(ledger, page)));
      figures.push(...(await showInBrowser(consoleUrl, consoleKey)));
      figures.push(...(await payBesideConsole({ devnet, seller, page })));
    } finally {
      await seller.stop();
    }
    const size = `${rows.toLocaleString("en")} payments, ${engine}`;
    return figures.map((figure) => ({ ...figure, scenario: `${figure.scenario}, ${size}` }));
  } finally {
    await postgres?.stop();
    await devnet.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
