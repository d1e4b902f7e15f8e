import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller, type TestSeller } from "../testing/test-seller.ts";

let devnet: Devnet;
let seller: TestSeller;
beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 4 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 100_000n });
  seller = await startTestSeller({ devnet, ledger: "sqlite::memory:" });
});
afterAll(async () => {
  await seller?.stop();
  await devnet?.stop();
});

/** Buys once through the proxy that a first message names. */
async function buyThrough(said: string): Promise<void> {
  const proxy = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? "";
  const pay = createPayingFetch({
    account: devnet.accounts.buyer,
    rpcUrls: { [devnet.network]: devnet.rpcUrl },
    budget: { perPayment: "$0.01" },
  });
  const answer = await pay(`${proxy}/weather`);
  expect(await answer.json()).toEqual({ forecast: "sun" });
  const unpaid = await fetch(`${proxy}/dear?\u001b[31m`);
  await unpaid.arrayBuffer();
  const broken = await fetch(`${proxy}/weather?2`, { headers: { "X-PAYMENT": "%%%" } });
  await broken.arrayBuffer();
}

describe("coinslot inspect", () => {
  it("prints a line for each cycle, its failed check, and stops at an interrupt", async () => {
    const ran = await runCoinslot(
      ["inspect", seller.url, "--port", "0", "--page-port", "0", "--rpc-url", devnet.rpcUrl],
      {
        interruptAfter: buyThrough,
      },
    );
    expect(ran.code).toBe(exitCode.done);
    const lines = ran.out.trim().split("\n");
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^\d\d:\d\d:\d\d #1 {2}GET \/weather {2}paid 200 {2}0\.001 USDT0 {2}eip155:9745 {2}x402 v2 {2}\d+ ms {2}\d+ gas {2}0x[0-9a-f]{64}$/,
      ),
    );
    expect(lines).toContainEqual(
      expect.stringMatching(/#2 {2}GET \/dear\?%1B\[31m {2}offered 402 {2}5 USDT0/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/#3 {2}GET \/weather\?2 {2}refused 400/));
    expect(lines).toContainEqual("    form: The X-PAYMENT header is not base64");
    expect(ran.err).toContain("Stopped.");
  });

  it("prints JSON, a cycle a line", async () => {
    const ran = await runCoinslot(
      ["inspect", seller.url, "--port", "0", "--page-port", "0", "--json"],
      {
        interruptAfter: buyThrough,
      },
    );
    const cycles = ran.out
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(cycles).toContainEqual(
      expect.objectContaining({ state: "paid", wire: "x402 v2", price: "0.001 USDT0" }),
    );
    expect(cycles).toHaveLength(3);
  });

  it("records cycles in a file, and replays them on a local chain alone", async () => {
    await inFolder(async (folder) => {
      const ports = ["--port", "0", "--page-port", "0"];
      const words = ["inspect", seller.url, ...ports, "--record", "shared.json"];
      const ran = await runCoinslot(words, { folder, interruptAfter: buyThrough });
      expect(ran.err).toContain("Recorded 3 cycles");
      const file = join(folder, "shared.json");
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      expect(await readFile(file, "utf8")).not.toMatch(/0x[0-9a-f]{128,}/);
      const places = ["--seller", seller.url, "--rpc-url", devnet.rpcUrl];
      const replay = (...more: string[]) =>
        runCoinslot(["inspect", "replay", "shared.json", ...more], { folder });
      const paid = await replay(...places, "--cycle", "1");
      expect([paid.code, paid.out, paid.err]).toEqual([
        exitCode.done,
        expect.stringMatching(/paid answer +200 +200 +same[\s\S]*receipt +success +success +same/),
        "",
      ]);
      const elsewhere = await replay("--seller", seller.url, "--rpc-url", "https://rpc.plasma.to");
      expect([elsewhere.code, elsewhere.err]).toEqual([
        exitCode.failed,
        expect.stringContaining("A replay needs a node of this machine"),
      ]);
      const foreign = await replay("--seller", "https://shop.example", "--rpc-url", devnet.rpcUrl);
      expect(foreign.err).toContain("A replay asks a seller of this machine");
      const other = await startDevnet({ chainId: 988, accountCount: 4 });
      try {
        const wrong = await replay(
          "--seller",
          seller.url,
          "--rpc-url",
          other.rpcUrl,
          "--cycle",
          "1",
        );
        expect(wrong.err).toContain(
          "The payment is on eip155:9745, and the local chain is eip155:988",
        );
      } finally {
        await other.stop();
      }
      const again = await runCoinslot(words, { folder, interruptAfter: async () => undefined });
      expect([again.code, again.err]).toEqual([exitCode.interrupted, expect.any(String)]);
    });
  });

  it("refuses a path, and a port that is taken", async () => {
    const path = await runCoinslot(["inspect", `${seller.url}/weather`]);
    expect([path.code, path.err]).toEqual([
      exitCode.usage,
      expect.stringContaining("the seller's origin"),
    ]);
    const { port } = new URL(seller.url);
    const taken = await runCoinslot(["inspect", seller.url, "--port", port]);
    expect([taken.code, taken.err]).toEqual([
      exitCode.usage,
      expect.stringContaining(`Port ${port} is taken`),
    ]);
  });
});
