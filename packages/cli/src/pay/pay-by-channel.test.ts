import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Devnet, placeChannels, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startChannelSeller } from "../../../client/src/testing/channel-seller.ts";
import { exitCode } from "../exit-code.ts";
import { inFolder, type Ran, runCoinslot } from "../testing/run-coinslot.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await placeChannels(devnet);
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
});
afterAll(() => devnet?.stop());

type Pay = (args: string[], answer?: boolean) => Promise<Ran>;

async function withBuyer(
  options: Parameters<typeof startChannelSeller>[1],
  work: (parts: {
    url: string;
    seller: Awaited<ReturnType<typeof startChannelSeller>>;
    pay: Pay;
    folder: string;
  }) => Promise<void>,
): Promise<void> {
  const seller = await startChannelSeller(devnet, options);
  try {
    await inFolder(async (folder) => {
      const env = {
        COINSLOT_NETWORK: devnet.network,
        COINSLOT_RPC_URL: devnet.rpcUrl,
        WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
      };
      const historyFile = join(folder, "state", "payments.jsonl");
      const pay: Pay = (args, answer) =>
        runCoinslot(["pay", ...args], {
          env,
          folder,
          historyFile,
          ...(answer === undefined ? {} : { answer }),
        });
      await work({ url: seller.url, seller, pay, folder });
    });
  } finally {
    await seller.close();
  }
}

describe("coinslot pay --max-deposit", () => {
  it(
    "shows the deposit, asks once for both signatures, and goes on by vouchers",
    () =>
      withBuyer({}, async ({ url, seller, pay, folder }) => {
        const first = await pay([url, "--max-deposit", "0.05"], true);
        expect(first).toMatchObject({ code: exitCode.done, questions: ["Pay?"] });
        expect(first.out).toContain("sun");
        expect(first.err).toMatch(/deposits +0.01 USDT0, not spent/);
        expect(first.err).toMatch(/by +channel 0x/);
        const second = await pay([url, "--max-deposit", "0.05", "--yes"]);
        expect(second.code).toBe(exitCode.done);
        expect(second.err).not.toContain("deposits");
        expect(seller.paid.map(({ payload }) => payload.type)).toEqual(["deposit", "voucher"]);
        // Nothing of a payment is left behind.
        expect(await readdir(folder)).toEqual(["state"]);

        const history = await pay(["--history"]);
        expect(history.out).toContain("0.001 USDT0, deposit 0.01 USDT0");
        expect(history.out).toContain(`channel ${seller.paid[0]?.id.slice(0, 12)}`);
        const { payments } = JSON.parse((await pay(["--history", "--json"])).out);
        expect(payments).toMatchObject([
          { state: "settled", value: "1000", channel: { ceiling: "2000" } },
          { state: "settled", value: "1000", channel: { ceiling: "1000", deposit: "10000" } },
        ]);
      }),
    60_000,
  );

  it("signs nothing when the answer is no, or the deposit is above the limit", () =>
    withBuyer({}, async ({ url, seller, pay }) => {
      expect((await pay([url, "--max-deposit", "0.05"], false)).code).toBe(exitCode.usage);
      const small = await pay([url, "--max-deposit", "0.009", "--yes"]);
      expect(small.code).toBe(exitCode.failed);
      expect(small.err).toContain("would lock");
      expect(seller.paid).toHaveLength(0);
    }));

  it(
    "keeps a voucher whose answer was lost, and resumes by it without another signature",
    () =>
      withBuyer(
        {
          onPaid: (_paid, response, count) => {
            if (count < 2 || count > 6) return false;
            response.destroy();
            return true;
          },
        },
        async ({ url, seller, pay, folder }) => {
          await pay([url, "--max-deposit", "0.05", "--yes"]);
          const lost = await pay([url, "--max-deposit", "0.05", "--yes"]);
          expect(lost.code).toBe(exitCode.unclear);
          const [kept = ""] = (await readdir(folder)).filter((name) => name.startsWith("coinslot"));
          expect(await readFile(join(folder, kept), "utf8")).toContain('"ceiling": "2000"');
          const refused = await pay([url, "--max-deposit", "0.05", "--yes"]);
          expect(refused.code).toBe(exitCode.unclear);
          expect(refused.err).toContain("may have been charged");
          const resumed = await pay(["--resume", kept]);
          expect(resumed.code).toBe(exitCode.done);
          expect(new Set(seller.paid.slice(1).map(({ ceiling }) => ceiling))).toEqual(
            new Set([2000n]),
          );
          expect((await readdir(folder)).filter((name) => name.startsWith("coinslot"))).toEqual([]);
        },
      ),
    120_000,
  );

  it(
    "leaves one kept voucher where a correction led to another, and none once it is paid",
    () =>
      withBuyer(
        {
          onPaid: (paid, response, count) => {
            if (count !== 2) return false;
            // Charged, and the seller has forgotten the answer.
            const { ceiling: signed, id } = paid;
            const { signature } = paid.payload.voucher;
            seller?.books.set(id, { charged: signed, signed, signature });
            response.destroy();
            return true;
          },
        },
        async (parts) => {
          seller = parts.seller;
          const { url, pay, folder } = parts;
          await pay([url, "--max-deposit", "0.05", "--yes"]);
          expect((await pay([`${url}/a`, "--max-deposit", "0.05", "--yes"])).code).toBe(
            exitCode.unclear,
          );
          const next = await pay([`${url}/b`, "--max-deposit", "0.05", "--yes"]);
          expect(next.code).toBe(exitCode.done);
          const kept = (await readdir(folder)).filter((name) => name.startsWith("coinslot"));
          expect(kept).toHaveLength(1);
          expect(parts.seller.sold.map(({ ceiling }) => ceiling)).toEqual([1000n, 3000n]);
        },
      ),
    120_000,
  );
});

let seller: Awaited<ReturnType<typeof startChannelSeller>> | undefined;
