import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import { createTestDatabase, type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { operateWebhooks } from "@coinslot/facilitator";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const patience = { timeout: 30_000 };

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

async function createLedger(engine: "sqlite" | "postgres") {
  if (engine === "postgres") return createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), "coinslot-cli-"));
  return { url: `sqlite:${folder}/ledger.db`, drop: () => rm(folder, { recursive: true }) };
}

const eventSchema = z.object({ id: z.string(), type: z.string() });
const listedSchema = z.object({ endpoints: z.tuple([z.object({ pending: z.number() })]) });

/** A receiver that verifies what it gets by the library of Standard Webhooks. */
async function openReceiver(status: () => number) {
  const received: z.infer<typeof eventSchema>[] = [];
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      );
      const verified = new Webhook(secret).verify(Buffer.concat(chunks).toString(), headers);
      received.push(eventSchema.parse(verified));
      response.writeHead(status()).end();
    });
  });
  onTestFinished(() => server.close());
  return { ...server, received };
}

describe.each(["sqlite", "postgres"] as const)("coinslot webhooks, on %s", (engine) => {
  it("lists, tests, replays and forwards events beside the seller that holds the ledger", async () => {
    const ledger = await createLedger(engine);
    onTestFinished(() => ledger.drop());
    const env = { COINSLOT_LEDGER: ledger.url };
    const run = (...args: string[]) => runCoinslot(args, { env });
    let status = 204;
    const receiver = await openReceiver(() => status);
    const url = `${receiver.url}/hook`;
    const webhooks = [{ url, secret, unsafeAllowPrivateAddresses: true }];
    const seller = await startTestSeller({ devnet, ledger: ledger.url, webhooks });
    try {
      const listed = await run("webhooks", "list");
      expect(listed).toMatchObject({ code: exitCode.done, err: "" });
      expect(listed.out).toMatch(
        /^id +url +pending +oldest +dead +secrets\nwhk_[0-9a-f]{16} +http/,
      );
      expect(listed.out).not.toContain(secret);
      expect((await run("webhooks", "dead")).err).toBe("No event is dead.\n");

      const tested = await run("webhooks", "test");
      expect(tested.out).toMatch(/^webhook\.test goes to whk_[0-9a-f]{16}\.\n$/);
      await expect
        .poll(() => receiver.received.map(({ type }) => type), patience)
        .toEqual(["webhook.test"]);

      const local = await openReceiver(() => 204);
      const forwarded: string[] = [];
      const listening = runCoinslot(
        ["listen", "--forward", `${local.url}/hook`, "--secret", secret],
        {
          env,
          interruptAfter: async (said) => {
            forwarded.push(said);
            const pay = createPayingFetch({
              account: devnet.accounts.buyer,
              rpcUrls: { [devnet.network]: devnet.rpcUrl },
            });
            expect((await pay(`${seller.url}/weather`)).status).toBe(200);
            const types = () => local.received.map(({ type }) => type);
            await expect.poll(types, patience).toContain("payment.settled");
          },
        },
      );
      const ended = await listening;
      expect(ended.out).toMatch(/payment\.settled [0-9a-z]+ evt_\d+_[0-9a-f]{16}: delivered\n/);
      expect(forwarded[0]).toContain(`Forwarding events to ${local.url}/hook`);
      const [settled] = local.received.filter(({ type }) => type === "payment.settled");
      const copies = () => receiver.received.filter(({ id }) => id === settled?.id).length;
      await expect.poll(copies, patience).toBe(1);
      expect((await run("webhooks", "list")).out).not.toContain("listen");

      expect(await run("webhooks", "replay", "--id", settled?.id ?? "")).toMatchObject({
        code: exitCode.done,
        out: "1 to be delivered again.\n",
      });
      await expect.poll(copies, patience).toBe(2);
      status = 500;
      expect((await run("webhooks", "replay", "--from", "1h")).out).toMatch(/^\d+ to be/);
      await expect.poll(copies, patience).toBe(3);
      const waiting = await run("webhooks", "list", "--json");
      expect(listedSchema.parse(JSON.parse(waiting.out)).endpoints[0].pending).toBeGreaterThan(0);
      expect(await run("webhooks", "replay", "--dead")).toMatchObject({
        out: "0 to be delivered again.\n",
      });
    } finally {
      await seller.stop();
    }
  });
});

describe("coinslot webhooks", () => {
  it("needs a range to replay, and the id of an event", async () => {
    const ledger = await createLedger("postgres");
    onTestFinished(() => ledger.drop());
    const env = { COINSLOT_LEDGER: ledger.url };
    const seller = await startTestSeller({ devnet, ledger: ledger.url });
    await seller.stop();
    const bare = await runCoinslot(["webhooks", "replay"], { env });
    expect(bare).toMatchObject({ code: exitCode.usage });
    expect(bare.err).toContain("add --from, --to, --id or --dead");
    const wrong = await runCoinslot(["webhooks", "replay", "--id", "1"], { env });
    expect(wrong.err).toContain("no id of an event");
    expect((await runCoinslot(["webhooks", "list"], { env })).err).toContain("has no webhooks");
    expect((await runCoinslot(["webhooks", "test"], { env })).err).toContain("no such receiver");
  });

  it("leave with the ledger what a listener has not posted yet", async () => {
    const ledger = await createLedger("postgres");
    onTestFinished(() => ledger.drop());
    const seller = await startTestSeller({ devnet, ledger: ledger.url });
    await seller.stop();
    const webhooks = operateWebhooks(ledger.url);
    const listener = randomUUID();
    await webhooks.take(listener);
    for (let count = 0; count < 3; count += 1) await webhooks.test(`listen_${listener}`);
    // A receiver may hold each POST for 30 seconds, and a listener counts as lost after 60.
    expect(await webhooks.take(listener)).toHaveLength(1);
    expect(await webhooks.list()).toMatchObject([{ pending: 2 }]);
    await webhooks.leave(listener);
  });

  it("draws a secret that the signatures' library takes, and changes nothing", async () => {
    const { out, err } = await runCoinslot(["webhooks", "rotate-secret"]);
    expect(() => new Webhook(out.trim())).not.toThrow();
    expect(err).toContain("COINSLOT_WEBHOOK_SECRET");
  });
});
