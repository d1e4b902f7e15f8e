import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen, startDevnet, withDatabase } from "@coinslot/devnet";
import { createIndexer, indexerChain } from "@coinslot/indexer";
import { migrate, openDatabase } from "@coinslot/storage";
import { expect, it, onTestFinished } from "vitest";
import { indexerMigrations } from "../../../indexer/src/store/migrations/indexer-migrations.ts";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const patience = { timeout: 30_000, interval: 20 };

it("coinslot indexer webhooks watches addresses beside the service, and shows its receivers", async () => {
  const devnet = await startDevnet({ accountCount: 6 });
  onTestFinished(() => devnet.stop());
  const bodies: { type: string; data: Record<string, unknown> }[] = [];
  const receiver = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(204).end();
    });
  });
  onTestFinished(() => receiver.close());
  const folder = await mkdtemp(join(tmpdir(), "coinslot-webhooks-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const env = { INDEXER_DATABASE: `sqlite:${join(folder, "indexer.db")}` };
  const run = (...args: string[]) => runCoinslot(["indexer", "webhooks", ...args], { env });

  const absent = await run("list");
  expect(absent.code).toBe(exitCode.usage);
  expect(absent.err).toContain("does not exist yet");

  const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
  const hook = { url: receiver.url, secret, unsafeAllowPrivateAddresses: true };
  const indexer = createIndexer({
    chains: [indexerChain("plasma", { rpcUrls: [devnet.rpcUrl], pollIntervalMs: 20 })],
    database: env.INDEXER_DATABASE,
    webhooks: [{ ...hook, id: "deposits" }],
  });
  onTestFinished(() => indexer.close());
  await indexer.start();
  await expect.poll(async () => (await indexer.status()).chains[0]?.state, patience).toBe("live");

  const [first, second] = devnet.accounts.others.map(({ address }) => address);
  const file = join(folder, "customers.txt");
  await writeFile(file, `${first}\n${second}\r\n\n`);
  expect(await run("watch", "--file", file)).toMatchObject({ out: "2 new addresses.\n", code: 0 });
  expect(await run("unwatch", second ?? "")).toMatchObject({ out: "1 addresses removed.\n" });
  expect(await run("addresses")).toMatchObject({ out: `${first?.toLowerCase()}\n` });

  await devnet.mint({ to: first ?? "0x", amount: 7n });
  await expect.poll(() => bodies.map(({ type }) => type), patience).toContain("transfer.included");
  expect(bodies[0]?.data).toMatchObject({ amount: "7", to: first?.toLowerCase() });
  expect(await run("test")).toMatchObject({ out: "webhook.test goes to whk_deposits.\n" });
  await expect.poll(() => bodies.map(({ type }) => type), patience).toContain("webhook.test");

  const listed = JSON.parse((await run("list", "--json")).out);
  expect(listed.receivers).toMatchObject([{ id: "whk_deposits", watched: 1, dead: 0 }]);
  expect((await run("list")).out).toContain("whk_deposits");
  expect((await run("dead")).err).toContain("No event is dead.");
  expect((await run("replay", "--from", "24h")).out).toMatch(/^[1-9]\d* to be delivered again\./);

  for (const [args, problem] of [
    [["watch"], "Missing argument: addresses"],
    [["watch", "0x12"], 'Not an address: "0x12"'],
    [["watch", "--receiver", "typo", first ?? ""], "Known: whk_deposits"],
    [["replay"], "Nothing was replayed"],
    [["replay", "--id", "7"], "no id of an event"],
  ] as const) {
    const { code, err } = await run(...args);
    expect(err).toContain(problem);
    expect(code).toBe(exitCode.usage);
  }

  // SQLite changes the first page of a copy in another mode once it is opened for writing.
  const copy = join(folder, "copy.db");
  await withDatabase(env.INDEXER_DATABASE, ({ execute }) => execute(`vacuum into '${copy}'`));
  const before = await readFile(copy);
  for (const command of ["list", "dead", "addresses"]) {
    const words = ["indexer", "webhooks", command];
    const ran = await runCoinslot(words, { env: { INDEXER_DATABASE: `sqlite:${copy}` } });
    expect(ran, command).toMatchObject({ code: exitCode.done });
  }
  expect((await readFile(copy)).equals(before)).toBe(true);
});

it.each(["list", "dead", "addresses"])(
  "coinslot indexer webhooks %s names what to update where a former release made the database",
  async (command) => {
    const folder = await mkdtemp(join(tmpdir(), "coinslot-webhooks-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const url = `sqlite:${join(folder, "indexer.db")}`;
    const database = await openDatabase({ url });
    const { name, migrations } = indexerMigrations;
    await migrate(database, { name, migrations: migrations.slice(0, -1) });
    await database.close();
    const env = { INDEXER_DATABASE: url };
    const { code, err } = await runCoinslot(["indexer", "webhooks", command], { env });
    const { length } = migrations;
    expect(err).toContain(`at version ${length - 1}, and this program needs version ${length}`);
    expect(err).toContain("Update and restart the indexing service");
    expect(code).toBe(exitCode.failed);
  },
);
