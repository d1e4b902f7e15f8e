import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 20_000_000n });
});
afterAll(() => devnet?.stop());

it("coinslot pay --history shows what was paid, and what came back by the chain", async () => {
  await inFolder(async (folder) => {
    const historyFile = join(folder, "state", "payments.jsonl");
    const env = {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
    };
    const run = (...args: string[]) => runCoinslot(["pay", ...args], { env, folder, historyFile });
    expect((await run("--history")).err).toBe("This user has paid for nothing yet.\n");
    expect((await run("--history", "http://localhost")).code).toBe(exitCode.usage);

    const ledger = `sqlite:${join(folder, "ledger.db")}`;
    const seller = await startTestSeller({ devnet, ledger });
    expect((await run(`${seller.url}/weather?token=secret`, "--yes")).code).toBe(exitCode.done);
    expect((await run(`${seller.url}/echo`, "-d", "{}", "--yes")).code).toBe(exitCode.done);
    expect((await stat(historyFile)).mode & 0o777).toBe(0o600);
    expect(await readFile(historyFile, "utf8")).not.toContain("secret");
    const [, weather] = (await seller.facilitator.payments.list()).payments;
    await seller.stop();
    if (weather === undefined) throw new Error("Nothing was sold");

    const privateKey = generatePrivateKey();
    await devnet.mint({ to: privateKeyToAccount(privateKey).address, amount: 1_000n });
    const { network, rpcUrl, accounts } = devnet;
    const facilitator = createFacilitator({
      networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer, finalAfter: 2 }],
      ledger,
      refunds: { privateKey },
    });
    try {
      const payment = weather.id;
      const refund = { payment, amount: 400n, idempotencyKey: "one" };
      const { id } = await facilitator.refunds.create(refund);
      await vi.waitFor(
        async () => {
          await devnet.mine();
          expect(await facilitator.refunds.get(id)).toMatchObject({ state: "final" });
        },
        { timeout: 60_000, interval: 50 },
      );
    } finally {
      await facilitator.close();
    }

    // A crash in the middle of a line, and a line of another program.
    await appendFile(historyFile, '{"at":1,"state":"sent"\n{}\n');
    const shown = await run("--history");
    expect(shown).toMatchObject({ code: exitCode.done, err: "" });
    expect(shown.out.split("\n").slice(1, 3)).toEqual([
      expect.stringMatching(/settled +0\.001 USDT0 +none +POST http:.*\/echo$/),
      expect.stringMatching(/settled +0\.001 USDT0 +0\.0004 USDT0 +GET http:.*\/weather$/),
    ]);
    const json = JSON.parse((await run("--history", "--json")).out);
    expect(json.payments).toMatchObject([
      { refunded: "0", isComplete: true, refunds: [] },
      { value: "1000", refunded: "400", refunds: [{ n: 1, amount: "400" }] },
    ]);
    const away = { ...env, COINSLOT_RPC_URL: "http://127.0.0.1:1" };
    const unknown = await runCoinslot(["pay", "--history"], { env: away, folder, historyFile });
    expect(unknown.out).toContain("unknown");
    expect(unknown.err).toContain("no configured endpoint of that network returned the logs");
  });
}, 120_000);
