import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createTestDatabase,
  type Devnet,
  startDevnet,
  testUsdt0,
  withDatabase,
} from "@coinslot/devnet";
import { byDay } from "@coinslot/devnet/effort";
import {
  type IndexerService,
  readIndexerServiceConfiguration,
  startIndexerService,
} from "@coinslot/hosting";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

const silent = { info() {}, warn() {}, error() {} };
const patience = { timeout: 30_000, interval: 50 };
const sales = 3;

const engines = byDay(["sqlite"], ["sqlite", "postgres"]);

describe.each(engines)("books check by an index, on %s", (engine) => {
  let devnet: Devnet;
  let seller: TestSeller;
  let folder: string;
  let databases: { url: string; drop(): Promise<void> }[] = [];
  let ledger: string;
  let service: IndexerService;
  let env: Record<string, string>;

  async function createDatabase(name: string): Promise<string> {
    if (engine === "sqlite") return `sqlite:${join(folder, `${name}.db`)}`;
    const database = await createTestDatabase();
    databases.push(database);
    return database.url;
  }

  /** Settings of an index of the devnet, whose database has this name. */
  async function configure(name: string, startBlock = 0): Promise<Record<string, string>> {
    const file = join(folder, `${name}.yaml`);
    const chain = {
      preset: "plasma",
      rpcUrls: [devnet.rpcUrl],
      finality: { depth: 5 },
      verifyAfterMs: 50,
      pollIntervalMs: 20,
      startBlock,
    };
    await writeFile(file, JSON.stringify({ chains: [chain], port: 0 }));
    return { INDEXER_CONFIG: file, INDEXER_DATABASE: await createDatabase(name) };
  }

  async function serve(settings: Record<string, string>): Promise<IndexerService> {
    const started = await startIndexerService(readIndexerServiceConfiguration({ env: settings }), {
      logger: silent,
    });
    return started;
  }

  /** Waits until the index is sure of every block that is deep enough now. */
  async function caughtUp(running: IndexerService): Promise<void> {
    const target = Number(await devnet.client.getBlockNumber()) - 5;
    await vi.waitFor(async () => {
      const { chains } = await running.indexer.status();
      expect(chains[0]?.tokens[0]?.verifiedTo).toBeGreaterThanOrEqual(target);
    }, patience);
  }

  const check = (others: Record<string, string> = {}, ...args: string[]) =>
    runCoinslot(["books", "check", ...args], {
      env: { COINSLOT_LEDGER: ledger, ...env, ...others },
    });

  const execute = (...statements: string[]) =>
    withDatabase(ledger, async (database) => {
      for (const statement of statements) await database.execute(statement);
    });

  beforeAll(async () => {
    devnet = await startDevnet({ accountCount: 5 });
    await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
    folder = await mkdtemp(join(tmpdir(), "coinslot-index-check-"));
    databases = [];
    ledger = await createDatabase("ledger");
    seller = await startTestSeller({ devnet, ledger });
    for (let count = 0; count < sales; count += 1) {
      const paid = await runCoinslot(["pay", `${seller.url}/weather`, "--yes"], {
        env: {
          COINSLOT_NETWORK: devnet.network,
          COINSLOT_RPC_URL: devnet.rpcUrl,
          WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
        },
      });
      expect(paid).toMatchObject({ code: exitCode.done });
    }
    await vi.waitFor(
      async () => {
        await devnet.mine(1);
        const { payments } = await seller.facilitator.payments.list({ state: "confirmed" });
        expect(payments.filter(({ finalAt }) => finalAt !== undefined)).toHaveLength(sales);
      },
      { timeout: 20_000 },
    );
    await devnet.mine(6);
    env = await configure("index");
    service = await serve(env);
    await caughtUp(service);
  });

  afterAll(async () => {
    await service?.stop();
    await seller?.stop();
    await devnet?.stop();
    for (const database of databases) await database.drop();
    await rm(folder, { recursive: true, force: true });
  });

  it("finds no difference without any node, in the index of this machine", async () => {
    const { code, out, err } = await check();
    expect({ code, out }).toEqual({ code: exitCode.done, out: "" });
    expect(err).toMatch(
      /^No difference\. \d+ rows compared; 3 final transfers found by the index\.\n$/,
    );
  });

  it("finds no difference by the API of a service, with its key", async () => {
    const { key } = await service.keys.create({ owner: "books", ttlMs: 0 });
    const remote = { INDEXER_CONFIG: "", INDEXER_URL: service.url };
    const { code, err } = await check({ ...remote, INDEXER_API_KEY: key });
    expect(err).toContain("; 3 final transfers found by the index.");
    expect(code).toBe(exitCode.done);
    const refused = await check({ ...remote, INDEXER_API_KEY: "wrong" });
    expect(refused.code).toBe(exitCode.failed);
    expect(refused.err).not.toContain("No difference");
  });

  it("sends no file of this machine to the service that a folder's .env names", async () => {
    const values = { INDEXER_URL: service.url, INDEXER_API_KEY_FILE: join(folder, "seed") };
    await writeFile(values.INDEXER_API_KEY_FILE, "the words of a wallet");
    const hostile = await runCoinslot(["books", "check"], {
      env: { COINSLOT_LEDGER: ledger, ...values },
      file: { path: join(folder, ".env"), isOfFolder: true, values },
    });
    expect(hostile).toMatchObject({ code: exitCode.usage });
    expect(hostile.err).toContain("is not taken from a folder's .env file");
  });

  it("asks nodes alone where that is wished, and where there is no index", async () => {
    const nodes = { COINSLOT_NETWORK: devnet.network, COINSLOT_RPC_URL: devnet.rpcUrl };
    for (const { err } of [
      await check(nodes, "--no-indexer"),
      await check({ ...nodes, INDEXER_CONFIG: "" }),
    ])
      expect(err).toContain("; 3 final transfers found on the chain.");
    const neither = await check({ INDEXER_CONFIG: "" });
    expect(neither.err).toContain("No network is configured");
  });

  it("names a payment without its transfer, one that is not posted, and one that is not ours", async () => {
    const id = "(select min(id) from payments)";
    await execute("create table kept as select id, state, transaction_hash from payments");
    onTestFinished(async () => {
      await execute("drop table kept");
    });
    const restore = () =>
      execute(
        "update payments set state = (select state from kept where kept.id = payments.id), transaction_hash = (select transaction_hash from kept where kept.id = payments.id)",
      );
    await execute(`update payments set transaction_hash = '0x${"77".repeat(32)}' where id = ${id}`);
    const moved = await check();
    await restore();
    expect(moved.out).toMatch(/no transfer .*0\.001 USDT0 .*0x7777/);
    expect(moved.out).toMatch(/not ours .*0\.001 USDT0/);
    expect(moved.err).toBe("error: One difference.\n");

    await execute(
      "update payments set state = 'released' where id = (select max(id) from payments)",
    );
    const open = await check();
    await restore();
    expect(open.out).toMatch(/not posted .*0\.001 USDT0/);

    const { buyer, seller: recipient } = devnet.accounts;
    const hash = await devnet.client.writeContract({
      account: buyer,
      chain: null,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [recipient.address, 42n],
    });
    await devnet.mine(8);
    await caughtUp(service);
    const foreign = await check();
    expect(foreign.code).toBe(exitCode.done);
    expect(foreign.out).toMatch(new RegExp(`not ours .*0\\.000042 USDT0 +${hash} from`, "i"));
  });

  it("leaves payments for later that the index is not sure of yet", async () => {
    await execute(
      "update payments set block_number = block_number + 1000000 where id = (select max(id) from payments)",
    );
    const { out, err } = await check();
    await execute(
      "update payments set block_number = block_number - 1000000 where id = (select max(id) from payments)",
    );
    // Its transfer is known, and so is the payment.
    expect(out).not.toContain("no transfer");
    expect(err).toContain("2 final transfers found by the index; 1 not final yet");
  });

  it("asks a node for what an index that begins later does not have", async () => {
    const late = await configure("late", Number(await devnet.client.getBlockNumber()));
    const running = await serve(late);
    await devnet.mine(8);
    await caughtUp(running);
    await running.stop();
    const nodes = { COINSLOT_NETWORK: devnet.network, COINSLOT_RPC_URL: devnet.rpcUrl };
    const { code, err } = await check({ ...late, ...nodes });
    expect(err).toContain("; 3 final transfers found by the index; 3 of them by a node alone");
    expect(code).toBe(exitCode.done);
    const alone = await check(late);
    expect(alone.out.match(/no transfer/g)).toHaveLength(3);
  });
});
