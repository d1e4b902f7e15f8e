import { join } from "node:path";
import { createChannelFixture, type Devnet, placeChannels, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});
afterAll(() => devnet?.stop());

const price = 2_000n;

/** A seller with one channel, of which 2,000 of 10,000 units are charged. */
async function withSeller(
  work: (parts: {
    id: string;
    run: (args: string[]) => ReturnType<typeof runCoinslot>;
    claimed: () => Promise<bigint>;
    balance: () => Promise<bigint>;
  }) => Promise<void>,
): Promise<void> {
  await inFolder(async (folder) => {
    const { network, rpcUrl, accounts } = devnet;
    const channels = createChannelFixture(devnet);
    const config = channels.configOf();
    await channels.deposit(config, 10_000n);
    const ledger = `sqlite:${join(folder, "ledger.db")}`;
    const facilitator = createFacilitator({
      networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
      ledger,
      channels: { authorizer: { privateKey: accounts.deployer.privateKey } },
    });
    try {
      await facilitator.ready();
      const { channels: sales } = facilitator;
      const signature = await channels.signVoucher(config, price);
      const channelId = channels.idOf(config);
      const voucher = { channelId, maxClaimableAmount: price, signature };
      const admission = await vi.waitFor(
        async () => {
          const admitted = await sales?.admit({
            network,
            route: "GET /weather",
            presented: { channelConfig: config, voucher },
            price,
            fingerprint: "GET /weather",
            isSafe: true,
            isGone: () => false,
          });
          if (admitted?.state === "admitted") return admitted;
          await devnet.mine(1);
          throw new Error("The chain is not followed yet.");
        },
        { timeout: 30_000, interval: 100 },
      );
      const charge = await admission.run.charge({ amount: price });
      if (charge.state === "charged") charge.deliver();
      await work({
        id: channelId,
        run: (args) => runCoinslot(["channels", ...args, "--ledger", ledger], { folder }),
        claimed: async () => (await channels.stateOf(config)).totalClaimed,
        balance: async () => (await channels.stateOf(config)).balance,
      });
    } finally {
      await facilitator.close();
    }
  });
}

describe("coinslot channels, of a seller", () => {
  it("lists, shows and sums what is unclaimed, beside the running seller", () =>
    withSeller(async ({ id, run }) => {
      const listed = await run(["list", "--seller"]);
      expect(listed.code).toBe(exitCode.done);
      expect(listed.out).toMatch(/channel +state +charged +claimed +unclaimed +at risk/);
      expect(listed.out).toContain("0.002 USDT0");
      const page = JSON.parse((await run(["list", "--show", "unclaimed", "--json"])).out);
      expect(page).toMatchObject({ channels: [{ id, locked: { value: "10000" } }] });
      expect((await run(["list", "--show", "lost"])).err).toBe("No matching channels.\n");
      const shown = await run(["show", id.slice(0, 12)]);
      expect(shown.out).toMatch(/unclaimed +0.002 USDT0, since/);
      expect((await run(["show", "0x123456"])).err).toContain("no such channel");
      const totals = await run(["totals"]);
      expect(totals.out).toMatch(/eip155:9745 +1 +0.002 USDT0 +0.002 USDT0 +0 USDT0/);
    }));

  it("has the running seller claim, once", () =>
    withSeller(async ({ id, run, claimed }) => {
      await vi.waitFor(
        async () => {
          // Its charge may be lowered until its delivery is on the disk.
          await devnet.mine(1);
          const { out } = await run(["claim", id]);
          if (out.includes("nothing was sent")) expect(await claimed()).toBe(price);
          else expect(out).toContain("the claim of 1 channel is on its way: 0.002 USDT0");
          expect(await claimed()).toBe(price);
        },
        { timeout: 30_000, interval: 100 },
      );
      expect((await run(["claim", id])).out).toBe("eip155:9745: nothing was sent.\n");
      expect((await run(["claim", id.slice(0, 12)])).code).toBe(exitCode.usage);
    }));

  it("shows what a refund would do, and has the running seller give back, once", () =>
    withSeller(async ({ id, run, balance }) => {
      const dry = await run(["refund", id.slice(0, 12), "--dry-run"]);
      expect(dry.code).toBe(exitCode.done);
      expect(dry.err).toMatch(/claim +0.002 USDT0/);
      expect(dry.err).toMatch(/refund +0.008 USDT0/);
      expect(await balance()).toBe(10_000n);
      const args = ["refund", id.slice(0, 12), "--amount", "0.005", "--yes", "--key", "one"];
      await vi.waitFor(
        async () => {
          await devnet.mine(1);
          const { out } = await run(args);
          expect(out).toMatch(/^The refund of 0.005 USDT0 is in 0x/);
        },
        { timeout: 60_000, interval: 100 },
      );
      expect(await balance()).toBe(5_000n);
      await run(args);
      await devnet.mine(1);
      expect(await balance()).toBe(5_000n);
    }));

  it("says what is asked for where both a file and a seller are named", () =>
    withSeller(async ({ run }) => {
      const both = await run(["list", "--seller", "--file", "./channels.db"]);
      expect(both).toMatchObject({ code: exitCode.usage });
      expect(both.err).toContain("--file is of a buyer's channels, --seller of a seller's");
    }));
});
