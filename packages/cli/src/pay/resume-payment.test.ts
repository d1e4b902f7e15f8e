import { readdirSync } from "node:fs";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";

/** Of each test: its time is moved on. */
let devnet: Devnet;

beforeEach(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  onTestFinished(() => devnet.stop());
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});

function pay(folder: string, ...args: string[]) {
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
  };
  return runCoinslot(["pay", ...args], { folder, env });
}

/** Payments are valid for a few minutes. */
async function passTime() {
  await devnet.client.increaseTime({ seconds: 3_600 });
  await devnet.mine();
}

it("gives up a payment once its time is over, if the chain says that nobody took it", async () => {
  const server = await listen((request, response) => {
    const offered = {
      scheme: "exact",
      network: devnet.network,
      maxAmountRequired: "2000",
      resource: `http://${request.headers.host}/`,
      description: "",
      mimeType: "",
      payTo: devnet.accounts.seller.address,
      maxTimeoutSeconds: 60,
      asset: devnet.token,
    };
    if (request.headers["x-payment"] !== undefined) response.writeHead(500).end();
    else response.writeHead(402).end(JSON.stringify({ x402Version: 1, accepts: [offered] }));
  });
  onTestFinished(server.close);
  await inFolder(async (folder) => {
    expect(await pay(folder, server.url, "--yes")).toMatchObject({ code: exitCode.unclear });
    const [file = ""] = readdirSync(folder);
    expect(await pay(folder, "--resume", file)).toMatchObject({ code: exitCode.unclear });
    expect(readdirSync(folder)).toEqual([file]);

    await passTime();
    const { code, err } = await pay(folder, "--resume", file);
    expect(err).toContain("Nobody took the payment, and nobody can any more");
    expect(code).toBe(exitCode.failed);
    expect(readdirSync(folder)).toEqual([]);
  });
});

it("keeps a payment that was taken, however long ago", async () => {
  const seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
  await inFolder(async (folder) => {
    const failed = await pay(folder, `${seller.url}/shaky`, "--yes");
    await seller.stop();
    expect(failed).toMatchObject({ code: exitCode.unclear });
    const [file = ""] = readdirSync(folder);

    await passTime();
    expect(await pay(folder, "--resume", file)).toMatchObject({ code: exitCode.unclear });
    expect(readdirSync(folder)).toEqual([file]);
  });
});
