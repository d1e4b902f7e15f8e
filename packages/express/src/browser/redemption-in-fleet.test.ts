import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";
import supertest from "supertest";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { paymentMiddleware } from "../index.ts";
import { createBuyer } from "../testing/buyer.ts";

let devnet: Devnet;
const closings: (() => Promise<void>)[] = [];

beforeAll(async () => {
  devnet = await startDevnet();
});

afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
});

afterAll(async () => {
  await devnet?.stop();
});

async function createLedger(engine: string): Promise<string> {
  if (engine === "postgres") {
    const { url, drop } = await createTestDatabase();
    closings.push(drop);
    return url;
  }
  const folder = await mkdtemp(join(tmpdir(), "coinslot-redemption-"));
  closings.push(() => rm(folder, { recursive: true }));
  return `sqlite:${join(folder, "ledger.db")}`;
}

/** A seller's process, as far as its ledger is concerned. */
async function open(ledger: string) {
  const facilitator = createFacilitator({
    networks: [
      { network: devnet.network, rpcUrls: [devnet.rpcUrl], relayer: devnet.accounts.relayer },
    ],
    ledger,
  });
  const payTo = devnet.accounts.seller.address;
  const accepts = { scheme: "exact", network: devnet.network, payTo, price: "$0.001" } as const;
  const gate = paymentMiddleware({ "GET /paid": { accepts } }, facilitator);
  const app = express();
  let runs = 0;
  app.use(gate);
  app.get("/paid", (_request, response) => {
    runs += 1;
    response.type("html").send(`<h1>sold ${runs}</h1>`);
  });
  await gate.ready();
  const { url, close } = await listen(app);
  let closing: Promise<void> | undefined;
  const end = () => {
    closing ??= close().then(() => facilitator.close());
    return closing;
  };
  closings.push(end);
  return { url, runs: () => runs, end };
}

describe.each(["sqlite", "postgres"])("the cookie of a paid page, on %s", (engine) => {
  it("opens the answer in another process of the same ledger, and pays nothing", async () => {
    const ledger = await createLedger(engine);
    const first = await open(ledger);
    const buyer = createBuyer();
    await devnet.mint({ to: buyer.account.address, amount: 5_000n });
    const { headers } = await buyer.payFor(`${first.url}/paid`);
    const paid = await supertest(first.url)
      .get("/paid")
      .set({ ...headers, "Coinslot-Redeem": "1", "Idempotency-Key": "a key of this purchase" })
      .expect(200, "<h1>sold 1</h1>");
    const [cookie = ""] = [paid.get("Set-Cookie") ?? []].flat();
    // A SQLite ledger has one process, which may be started again.
    if (engine === "sqlite") await first.end();
    const second = await open(ledger);
    // Its delivery is marked after the answer has gone out, by the other process.
    await expect
      .poll(async () => {
        const opened = await supertest(second.url)
          .get("/paid")
          .set({ Accept: "text/html", Cookie: cookie.split(";", 1)[0] ?? "" });
        return [opened.status, opened.text.includes("sold 1")];
      })
      .toEqual([200, true]);
    expect([first.runs(), second.runs()]).toEqual([1, 0]);
  });
});
