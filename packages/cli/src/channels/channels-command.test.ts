import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import { type Devnet, placeChannels, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type ChannelSeller,
  startChannelSeller,
} from "../../../client/src/testing/channel-seller.ts";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});
afterAll(() => devnet?.stop());

/** A buyer with one channel, of which 1,000 units are charged and 9,000 locked. */
async function withChannel(
  work: (parts: {
    seller: ChannelSeller;
    id: string;
    run: (args: string[], answer?: boolean) => ReturnType<typeof runCoinslot>;
  }) => Promise<void>,
): Promise<void> {
  const seller = await startChannelSeller(devnet, {
    // It answers no refund.
    onPaid: ({ payload }, response) => {
      if (payload.type === "refund") response.destroy();
      return payload.type === "refund";
    },
  });
  try {
    await inFolder(async (folder) => {
      const file = join(folder, "channels.db");
      const pay = createPayingFetch({
        account: devnet.accounts.buyer,
        rpcUrls: { [devnet.network]: devnet.rpcUrl },
        channels: { file },
      });
      await pay(seller.url);
      const [channel] = await pay.listChannels();
      const env = {
        COINSLOT_NETWORK: devnet.network,
        COINSLOT_RPC_URL: devnet.rpcUrl,
        WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
      };
      const run = (args: string[], answer?: boolean) =>
        runCoinslot(["channels", ...args, "--file", file], {
          env,
          folder,
          ...(answer === undefined ? {} : { answer }),
        });
      await work({ seller, id: channel?.id ?? "", run });
    });
  } finally {
    await seller.close();
  }
}

describe("coinslot channels", () => {
  it("lists and shows what is locked, as the file and the chain have it", () =>
    withChannel(async ({ id, run, seller }) => {
      const listed = await run(["list"]);
      expect(listed.code).toBe(exitCode.done);
      expect(listed.out).toContain("open");
      expect(listed.out).toContain("0.009 USDT0");
      expect(listed.out).toContain(new URL(seller.url).origin);
      expect(JSON.parse((await run(["list", "--json"])).out)).toMatchObject({
        channels: [{ id, charged: "1000", ceiling: "1000", locked: "9000", balance: "10000" }],
      });
      const shown = await run(["show", id.slice(0, 12)]);
      expect(shown.out).toContain("0.01 USDT0 deposited, 0 USDT0 of it claimed");
      expect(shown.out).toContain("0.001 USDT0 at most, in all");
      expect((await run(["show", "0x"])).code).toBe(exitCode.usage);
      expect((await run(["show", `0x${"00".repeat(32)}`])).code).toBe(exitCode.usage);
    }));

  it(
    "withdraws from a silent seller in two steps, and asks before each",
    () =>
      withChannel(async ({ id, run }) => {
        expect((await run(["withdraw", id])).code).toBe(exitCode.usage);
        const refused = await run(["withdraw", id], false);
        expect(refused).toMatchObject({ code: exitCode.usage, questions: ["Take it back?"] });
        const begun = await run(["withdraw", id, "--yes"]);
        expect(begun.err).not.toContain("error");
        expect(begun.out).toContain("The withdrawal of 0.009 USDT0 has begun.");
        expect((await run(["list"])).out).toContain("withdrawing");
        expect((await run(["withdraw", id, "--yes"])).out).toContain("Run this again after");
        await devnet.client.increaseTime({ seconds: 901 });
        await devnet.mine();
        expect((await run(["withdraw", id, "--yes", "--json"])).out).toContain('"withdrawn"');
        expect((await run(["list"])).out).toContain("empty");
      }),
    60_000,
  );

  it("names no channels where the file is absent, and creates none", () =>
    inFolder(async (folder) => {
      const file = join(folder, "none.db");
      const listed = await runCoinslot(["channels", "list", "--file", file], { folder });
      expect(listed).toMatchObject({ code: exitCode.done, err: "This file has no channels.\n" });
      expect((await runCoinslot(["channels", "list"], { folder })).code).toBe(exitCode.usage);
    }));
});
