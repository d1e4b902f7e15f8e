import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createPayingFetch } from "@coinslot/client";
import {
  createTestDatabase,
  type Devnet,
  type DevnetOptions,
  placeChannels,
  startDevnet,
  superJournalOf,
} from "@coinslot/devnet";
import { channelContracts, channelNeeds } from "@coinslot/protocol";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { exitCode } from "../exit-code.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";
import { startTestSeller } from "../testing/test-seller.ts";
import type { Check } from "./check.ts";

let devnet: Devnet;
let otherChain: Devnet;
beforeAll(async () => {
  [devnet, otherChain] = await Promise.all([
    startDevnet({ accountCount: 4 }),
    startDevnet({ chainId: 988, accountCount: 4 }),
  ]);
});
afterAll(() => Promise.all([devnet?.stop(), otherChain?.stop()]));

const deadUrl = "http://127.0.0.1:1";

/** The doctor's findings in a correct environment with these changes. */
async function examine(
  change: Readonly<Record<string, string>> = {},
  options: { folder?: string } = {},
) {
  const env = {
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: devnet.rpcUrl,
    COINSLOT_LEDGER: "sqlite::memory:",
    FACILITATOR_PRIVATE_KEY: devnet.accounts.relayer.privateKey,
    PAY_TO: devnet.accounts.seller.address,
    ...change,
  };
  const { code, out } = await runCoinslot(["doctor", "--json"], { env, ...options });
  const answer: { isWell: boolean; checks: Check[] } = JSON.parse(out);
  const find = (topic: Check["topic"]) => answer.checks.filter((check) => check.topic === topic);
  return { code, isWell: answer.isWell, find };
}

/** A chain of its own to change, and the doctor's findings about its channels. */
async function onAnotherChain(options: DevnetOptions = {}) {
  const placed = await startDevnet({ chainId: 42_161, accountCount: 4, ...options });
  onTestFinished(placed.stop);
  const find = async () => {
    const { network, rpcUrl } = placed;
    const { find } = await examine({ COINSLOT_NETWORK: network, COINSLOT_RPC_URL: rpcUrl });
    return find("channels");
  };
  return { placed, find };
}

describe("coinslot doctor", () => {
  it("reports a correct configuration as ok, with the days that the gas money lasts", async () => {
    const { code, isWell, find } = await examine();
    expect({ code, isWell }).toEqual({ code: exitCode.done, isWell: true });
    expect(find("rpc")).toMatchObject([{ status: "ok", about: "Plasma" }]);
    expect(find("token")).toMatchObject([{ status: "ok" }]);
    expect(find("clock")).toMatchObject([{ status: "ok" }]);
    expect(find("relayer")[0]?.found).toMatch(/holds 10000 XPL: enough for about \d+ settlements/);
    expect(find("ledger")).toMatchObject([{ status: "warning" }]);
  });

  it("prints a table on a terminal, and exits with 1 for a problem", async () => {
    const env = { COINSLOT_NETWORK: devnet.network, COINSLOT_RPC_URL: deadUrl };
    const { code, out, err } = await runCoinslot(["doctor"], { env });
    expect(code).toBe(exitCode.failed);
    expect(out).toMatch(/^broken +rpc +Plasma +The endpoint cannot be used .*check its URL/m);
    expect(err).toContain("One thing is broken.");
  });

  it("distinguishes an endpoint of another chain, and one that is away, from a working one", async () => {
    const wrong = await examine({ COINSLOT_RPC_URL: `${devnet.rpcUrl},${otherChain.rpcUrl}` });
    expect(wrong.code).toBe(exitCode.failed);
    expect(wrong.find("rpc")[1]).toMatchObject({
      status: "broken",
      found: expect.stringContaining("Endpoint 2 serves chain 988"),
    });
    const away = await examine({ COINSLOT_RPC_URL: `${deadUrl},${devnet.rpcUrl}` });
    expect(away.code).toBe(exitCode.done);
    expect(away.find("rpc").map(({ status }) => status)).toEqual(["warning", "ok"]);
  });

  it("reports a token without EIP-3009, and checks every network", async () => {
    const { find } = await examine({
      COINSLOT_RPC_URL_988: otherChain.rpcUrl,
      COINSLOT_TOKENS: `eip155:988/${otherChain.multicall3}`,
    });
    expect(find("token")).toMatchObject([
      { status: "ok", about: "Plasma" },
      { status: "broken", about: "Stable", found: expect.stringContaining("EIP-3009") },
    ]);
  });

  it("reports a relayer that cannot pay, and one that is the seller", async () => {
    const key = `0x${"77".repeat(32)}`;
    const poor = await examine({ FACILITATOR_PRIVATE_KEY: key });
    expect(poor.find("relayer")).toMatchObject([
      { status: "broken", found: expect.stringContaining("send it some") },
    ]);
    const { address } = devnet.accounts.relayer;
    const same = await examine({ PAY_TO: address });
    expect(same.find("settings")[0]).toMatchObject({ status: "warning" });
    const none = await examine({ FACILITATOR_PRIVATE_KEY: "" });
    expect(none.find("relayer")).toMatchObject([{ status: "skipped" }]);
    expect(none.code).toBe(exitCode.done);
  });

  it("reports all faults of the settings, and continues with the other checks", async () => {
    const { code, find } = await examine({
      COINSLOT_RPC_URL: "rpc.example.com",
      PAY_TO: "me",
      FACILITATOR_PRIVATE_KEY: "0xsecret",
    });
    expect(code).toBe(exitCode.failed);
    const found = find("settings").map((check) => check.found);
    expect(found.join("\n")).toContain("COINSLOT_RPC_URL must hold");
    expect(found.join("\n")).toContain("FACILITATOR_PRIVATE_KEY is not a valid");
    expect(found.join("\n")).not.toContain("secret");
    expect(find("ledger")).toHaveLength(1);
  });

  it("reports a clock behind the chain's", async () => {
    const future = Math.floor(Date.now() / 1000) + 3600;
    await otherChain.client.setNextBlockTimestamp({ timestamp: BigInt(future) });
    await otherChain.mine();
    const { find } = await examine({ COINSLOT_RPC_URL_988: otherChain.rpcUrl });
    expect(find("clock")).toMatchObject([
      { status: "ok", about: "Plasma" },
      { status: "broken", about: "Stable", found: expect.stringContaining("NTP") },
    ]);
  });

  it("reports what the chain has of payment channels", async () => {
    const { placed, find: findOn } = await onAnotherChain();
    const { settlement, erc3009Collector } = channelContracts;
    const found = async () => (await findOn())[0];
    expect(await found()).toMatchObject({
      status: "skipped",
      about: "Arbitrum One",
      found: expect.stringContaining(
        `no escrow of payment channels (${settlement}): any account may deploy it`,
      ),
    });
    await placed.client.setCode({ address: channelNeeds.create2Deployer, bytecode: "0x" });
    expect((await found())?.found).toContain("and the chain lacks the CREATE2 deployer");

    await placed.client.setCode({ address: settlement, bytecode: "0x00" });
    expect(await found()).toMatchObject({
      status: "warning",
      found: expect.stringContaining("is not the escrow of payment channels (domain, CHANNEL_"),
    });
    await placeChannels(placed);
    expect(await found()).toMatchObject({
      status: "ok",
      found: expect.stringContaining("takes deposits by EIP-3009, not by Permit2"),
    });
    await placed.client.setCode({ address: channelNeeds.permit2, bytecode: "0x00" });
    await placed.client.setCode({ address: channelContracts.permit2Collector, bytecode: "0x00" });
    expect((await found())?.found).toContain("takes deposits by EIP-3009 and Permit2");
    await placed.client.setCode({ address: placed.multicall3, bytecode: "0x" });
    expect((await found())?.found).toContain("Multicall3 is missing");
    expect((await found())?.found).toContain(
      "There: EIP-1153, escrow, collector for EIP-3009, collector for Permit2, Permit2. Missing: Multicall3, CREATE2 deployer",
    );
    await placed.client.setCode({ address: erc3009Collector, bytecode: "0x" });
    expect(await found()).toMatchObject({
      status: "warning",
      found: expect.stringContaining(`no collector at ${erc3009Collector}`),
    });
  });

  it("warns of an escrow on a chain without transient storage", async () => {
    const { placed, find: findOn } = await onAnotherChain({ hardfork: "shanghai" });
    const [absent] = await findOn();
    expect(absent?.found).toContain("and the chain lacks EIP-1153");
    await placeChannels(placed);
    expect(await findOn()).toMatchObject([
      { status: "warning", found: expect.stringContaining("the chain lacks EIP-1153") },
    ]);
  });

  it("checks the ledger beside the seller that holds it", async () => {
    await inFolder(async (folder) => {
      const file = join(folder, "ledger.db");
      const ledger = `sqlite:${file}`;
      const early = await examine({ COINSLOT_LEDGER: ledger }, { folder });
      expect(early.find("ledger")[0]?.found).toContain("not there yet");
      const seller = await startTestSeller({ devnet, ledger });
      const during = await examine({ COINSLOT_LEDGER: ledger }, { folder });
      expect(during.find("ledger")).toMatchObject([
        { status: "ok", found: "It opens, and holds 0 payments" },
        { status: "ok", found: expect.stringContaining("A seller uses it") },
      ]);
      await seller.stop();
      const after = await examine({ COINSLOT_LEDGER: ledger }, { folder });
      expect(after.find("ledger")[1]?.found).toContain("No seller uses it");
      const kept = join(folder, "kept");
      writeFileSync(kept, "kept");
      writeFileSync(`${file}.lock`, "xx");
      writeFileSync(`${file}.lock-journal`, superJournalOf(kept));
      const foreign = await examine({ COINSLOT_LEDGER: ledger }, { folder });
      expect(existsSync(kept)).toBe(true);
      expect(foreign.find("ledger")[1]).toMatchObject({
        status: "broken",
        found: expect.stringContaining("is not empty, so it is no lock: remove it"),
      });
      const other = join(folder, "other.db");
      writeFileSync(other, "no database at all, and long enough to be read as a header of one");
      const broken = await examine({ COINSLOT_LEDGER: `sqlite:${other}` }, { folder });
      expect(broken.find("ledger")).toMatchObject([{ status: "broken" }]);
      const nowhere = await examine({ COINSLOT_LEDGER: `sqlite:${folder}/no/ledger.db` });
      expect(nowhere.find("ledger")[0]?.found).toContain("make the folder");
    });
  });

  it("warns of a recipient whose payments another ledger has", async () => {
    await inFolder(async (folder) => {
      const [own, another] = ["own.db", "another.db"].map((name) => `sqlite:${join(folder, name)}`);
      if (own === undefined || another === undefined) throw new Error("No ledgers.");
      const { seller, buyer } = devnet.accounts;
      const examineOwn = async () => {
        const { find, code } = await examine({ COINSLOT_LEDGER: own }, { folder });
        return { code, checks: find("recipient") };
      };
      async function buyAt(ledger: string): Promise<void> {
        const shop = await startTestSeller({ devnet, ledger });
        try {
          const pay = createPayingFetch({
            privateKey: buyer.privateKey,
            rpcUrls: { [devnet.network]: devnet.rpcUrl },
          });
          expect((await pay(`${shop.url}/weather`)).status).toBe(200);
        } finally {
          await shop.stop();
        }
      }
      await devnet.mint({ to: buyer.address, amount: 1_000_000n });
      await buyAt(own);
      // A plain transfer is no payment.
      await devnet.mint({ to: seller.address, amount: 5n });
      expect(await examineOwn()).toMatchObject({ code: exitCode.done, checks: [{ status: "ok" }] });
      await buyAt(another);
      expect(await examineOwn()).toMatchObject({
        code: exitCode.done,
        checks: [{ status: "warning", found: expect.stringContaining("give each ledger its own") }],
      });
    });
  });

  it("checks a ledger in PostgreSQL", async () => {
    const { url, drop } = await createTestDatabase();
    const empty = await examine({ COINSLOT_LEDGER: url });
    expect(empty.find("ledger")).toMatchObject([
      { status: "warning", found: expect.stringContaining("are not there") },
    ]);
    await drop();
    const away = await examine({ COINSLOT_LEDGER: "postgres://me:secret@127.0.0.1:1/ledger" });
    expect(away.find("ledger")[0]).toMatchObject({ status: "broken" });
    expect(away.find("ledger")[0]?.found).not.toContain("secret");
  });

  it("warns of an .env file that other users can read", async () => {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, ".env"), "");
      chmodSync(join(folder, ".env"), 0o644);
      const { find } = await examine({}, { folder });
      expect(find("settings")[0]?.found).toContain("chmod 600 .env");
    });
  });
});
