import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Devnet, devSeedPhrase, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_500_000n });
});
afterAll(() => devnet?.stop());

function wallet(env: Readonly<Record<string, string>>, ...args: string[]) {
  const network = { COINSLOT_NETWORK: devnet.network, COINSLOT_RPC_URL: devnet.rpcUrl };
  return runCoinslot(["wallet", ...args], { env: { ...network, ...env } });
}

describe("coinslot wallet", () => {
  it("shows every role's address and balances", async () => {
    const { buyer, seller } = devnet.accounts;
    const env = { WALLET_PRIVATE_KEY: buyer.privateKey, PAY_TO: seller.address };
    const { code, out } = await wallet(env);
    expect(code).toBe(exitCode.done);
    expect(out).toMatch(new RegExp(`^buyer +${buyer.address} +Plasma +1.5 USDT0$`, "m"));
    expect(out).toMatch(new RegExp(`^seller +${seller.address} +Plasma +10000 XPL$`, "m"));
    const { out: json } = await wallet(env, "--json");
    expect(JSON.parse(json)).toContainEqual(
      expect.objectContaining({ role: "buyer", token: devnet.token, amount: "1500000" }),
    );
  });

  it("reads a seed phrase from a file, and reports a mistyped one without repeating it", async () => {
    await inFolder(async (folder) => {
      const file = join(folder, "seed");
      writeFileSync(file, `  ${devSeedPhrase.toUpperCase()}\n`);
      const { out } = await wallet({ FACILITATOR_SEED_PHRASE_FILE: file });
      expect(out).toContain(devnet.accounts.deployer.address);
      writeFileSync(file, devSeedPhrase.replace("junk", "test"));
      const mistyped = await wallet({ FACILITATOR_SEED_PHRASE_FILE: file });
      expect(mistyped.code).toBe(exitCode.usage);
      expect(mistyped.err).toContain("FACILITATOR_SEED_PHRASE is not a valid seed phrase");
      expect(mistyped.err).not.toContain("test test");
    });
  });

  it("shows the environment's tokens, and the other networks when one is away", async () => {
    const token = await devnet.deployToken({ name: "Points", version: "2", decimals: 2 });
    await devnet.mint({ token, to: devnet.accounts.buyer.address, amount: 150n });
    const env = {
      WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
      COINSLOT_TOKENS: `${devnet.network}/${token}`,
      COINSLOT_RPC_URL_988: "http://127.0.0.1:1",
    };
    const { code, out, err } = await wallet(env);
    expect(out).toContain("1.5 Points");
    expect(code).toBe(exitCode.failed);
    expect(err).toContain("Stable could not be reached");
    expect(out).toMatch(/^buyer +0x\w{40} +Stable +not known$/m);
  });

  it("shows the addresses without a network, and despite wrong settings", async () => {
    const { address } = devnet.accounts.seller;
    const nowhere = await runCoinslot(["wallet"], { env: { PAY_TO: address } });
    expect(nowhere.code).toBe(exitCode.done);
    expect(nowhere.out).toMatch(new RegExp(`^seller +${address} +- +not known$`, "m"));
    expect(nowhere.err).toContain("No network is configured, so balances are unknown");
    const json = await runCoinslot(["wallet", "--json"], { env: { PAY_TO: address } });
    expect(JSON.parse(json.out)).toEqual([{ role: "seller", address }]);
    const wrong = await runCoinslot(["wallet"], {
      env: { PAY_TO: address, COINSLOT_NETWORK: "eip155:9745" },
    });
    expect(wrong.code).toBe(exitCode.usage);
    expect(wrong.out).toContain(address);
    expect(wrong.err).toContain("COINSLOT_RPC_URL");
  });

  it("lists the missing settings", async () => {
    const unattended = await wallet({});
    expect(unattended).toMatchObject({ code: exitCode.usage });
    expect(unattended.err).toContain("coinslot init");
    const two = await wallet({ PAY_TO: devnet.token, SELLER_SEED_PHRASE: devSeedPhrase });
    expect(two.err).toContain("PAY_TO is not the address of SELLER_SEED_PHRASE");
  });
});
