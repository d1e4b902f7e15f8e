import { readFile } from "node:fs/promises";
import { createChannelFixture } from "@coinslot/devnet";
import { plasma } from "@coinslot/protocol";
import { toFunctionSelector, toHex } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import { budgetStateSchema } from "../budget/budget-state.ts";
import { startLyingNode } from "../testing/lying-node.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, inFolder, sellerOf, createFetch, records } = useChannels();

const calls = {
  channel: toFunctionSelector("channels(bytes32)").slice(2),
  use: toFunctionSelector("authorizationState(address,bytes32)").slice(2),
  withdrawal: toFunctionSelector("pendingWithdrawals(bytes32)").slice(2),
};
const no = `0x${"0".repeat(64)}`;
const empty = `0x${"0".repeat(128)}`;

async function openBookings() {
  const text = await readFile(inFolder("budget.json"), "utf8");
  return budgetStateSchema.parse(JSON.parse(text)).open;
}

/** Endpoints of two hosts. The second one answers these calls otherwise. */
async function endpoints(lie: (call: { method: string; text: string }, truth: unknown) => unknown) {
  const { rpcUrl } = world.devnet();
  const node = await startLyingNode(rpcUrl, ({ method, params }, truth) =>
    lie({ method, text: JSON.stringify(params ?? []) }, truth),
  );
  return { [plasma]: [rpcUrl, world.keep(node).url.replace("127.0.0.1", "localhost")] };
}

/** A clock that is the chain's, too. */
async function sharedClock() {
  const { client, mine, snapshot, revert } = world.devnet();
  const before = await snapshot();
  onTestFinished(() => revert(before));
  let now = Date.now();
  return {
    now: () => now,
    async pass(seconds: number) {
      now += seconds * 1000;
      await client.setNextBlockTimestamp({ timestamp: BigInt(now) / 1000n });
      await mine();
    },
  };
}

/** A seller that sells the first so many requests, and refuses the others. */
const sellerOfFirst = (sold: number, extra?: () => Record<string, unknown>) =>
  sellerOf({
    ...(extra && { extra }),
    onPaid: (_paid, response, count) => {
      if (count <= sold) return false;
      response.writeHead(402).end("{}");
      return true;
    },
  });

describe("a deposit that one endpoint of two calls unused for ever", () => {
  it("counts once while it may be executed, and ends with its time: another one follows", async () => {
    const clock = await sharedClock();
    const seller = await sellerOf({ extra: () => ({ minDeposit: "2000" }) });
    const rpcUrls = await endpoints(({ text }) => (text.includes(calls.use) ? no : undefined));
    const pay = createFetch({}, { rpcUrls, now: clock.now });
    for (let count = 0; count < 2; count += 1) expect((await pay(seller.url)).status).toBe(200);
    expect(await pay.listChannels()).toMatchObject([{ depositing: 2000n, locked: 0n }]);
    await clock.pass(700);
    expect((await pay(seller.url)).status).toBe(200);
    expect(await pay.listChannels()).toMatchObject([{ balance: 2000n, locked: 1000n }]);
  });

  it("ends at once where that endpoint's head stands still", async () => {
    const clock = await sharedClock();
    const seller = await sellerOf();
    const { client } = world.devnet();
    const timestamp = toHex((await client.getBlock()).timestamp);
    const rpcUrls = await endpoints(({ method, text }, truth) => {
      if (method === "eth_getBlockByNumber") return { ...Object(truth), timestamp };
      return text.includes(calls.use) ? no : undefined;
    });
    await clock.pass(700);
    const pay = createFetch({}, { rpcUrls, now: clock.now });
    expect((await pay(seller.url)).status).toBe(200);
    expect(await pay.listChannels()).toMatchObject([{ depositing: 0n, balance: 10_000n }]);
  });
});

describe("a deposit that expires unexecuted while one endpoint does not return its channel", () => {
  it("stays open, and frees its room once that endpoint does", async () => {
    const clock = await sharedClock();
    const refusing = await sellerOfFirst(0);
    let isAway = false;
    const rpcUrls = await endpoints(({ text }) =>
      isAway && text.includes(calls.channel) ? "0x" : undefined,
    );
    const budget = { perDay: "$0.001", file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, rpcUrls, now: clock.now });
    expect((await pay(refusing.url)).status).toBe(402);
    await clock.pass(1300);
    isAway = true;
    await pay(refusing.url).catch(() => undefined);
    isAway = false;
    const honest = await sellerOf();
    expect((await pay(honest.url)).status).toBe(200);
    expect(await openBookings()).toEqual([]);
  });
});

describe("a balance that a seller has given back unasked", () => {
  it("takes its booking along, as two hosts show it", async () => {
    let minDeposit = 10_000n;
    const seller = await sellerOfFirst(1, () => ({ minDeposit: `${minDeposit}` }));
    const rpcUrls = await endpoints(() => undefined);
    const budget = { file: inFolder("budget.json") };
    const pay = createFetch({}, { budget, rpcUrls });
    expect((await pay(seller.url)).status).toBe(200);
    const channels = createChannelFixture(world.devnet());
    const [{ config } = {}] = await records();
    if (config === undefined) throw new Error("No channel");
    await channels.claim([await channels.rowOf(config, 1000n)]);
    await channels.refundSigned(config, 2n ** 100n, 0n);
    // Above `locked`: no deposit follows.
    minDeposit = 2_000_000n;
    expect((await pay(seller.url)).status).toBe(402);
    expect((await records())[0]).toMatchObject({ ceiling: 2000n, balance: 1000n });
    expect(await openBookings()).toEqual([]);
  });
});

describe("a withdrawal that a second endpoint alone shows", () => {
  it("stops no purchase: this payer has begun none", async () => {
    const seller = await sellerOf({ extra: () => ({ minDeposit: "2000" }) });
    const pending = `0x${toHex(1n, { size: 32 }).slice(2)}${toHex(2n ** 40n - 1n, { size: 32 }).slice(2)}`;
    const rpcUrls = await endpoints(({ text }) =>
      text.includes(calls.withdrawal) ? pending : undefined,
    );
    const pay = createFetch({}, { rpcUrls });
    for (let count = 0; count < 4; count += 1) expect((await pay(seller.url)).status).toBe(200);
    expect(seller.paid.filter(({ payload }) => payload.type === "deposit")).toHaveLength(2);
    expect(await records()).toMatchObject([{ isWithdrawing: false }]);
  });
});

describe("an endpoint whose head is in the future", () => {
  it("makes no other one look stuck: the balance that it denies counts", async () => {
    const seller = await sellerOfFirst(1);
    const rpcUrls = await endpoints(({ method, text }, truth) => {
      if (method !== "eth_getBlockByNumber")
        return text.includes(calls.channel) ? empty : undefined;
      return { ...Object(truth), timestamp: toHex(Math.floor(Date.now() / 1000) + 3600) };
    });
    const [honest = "", lying = ""] = rpcUrls[plasma];
    const pay = createFetch({}, { rpcUrls: { [plasma]: [lying, honest] } });
    await createFetch()(seller.url);
    expect((await pay(seller.url)).status).toBe(402);
    expect(seller.paid.map(({ payload }) => payload.type)).toEqual(["deposit", "voucher"]);
  });
});
