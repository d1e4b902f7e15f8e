import { createChannelFixture } from "@coinslot/devnet";
import { eip3009Abi, plasma } from "@coinslot/protocol";
import { toFunctionSelector } from "viem";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ChannelSeller } from "../testing/channel-seller.ts";
import { startLyingNode } from "../testing/lying-node.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, openStore, sellerOf, createFetch, records, onChain } = useChannels();

function balanceOfBuyer(): Promise<bigint> {
  const { client, token, accounts } = world.devnet();
  const read = { address: token, abi: eip3009Abi, functionName: "balanceOf" } as const;
  return client.readContract({ ...read, args: [accounts.buyer.address] });
}

/**
 * A seller that answers a refund payload by a claim and a refund on the chain, or in another way.
 */
async function sellerThatRefunds(
  refund: "honest" | "part" | "lies" | "refuses" | "silent",
  terms: Parameters<typeof sellerOf>[0] = {},
): Promise<ChannelSeller> {
  const seller: ChannelSeller = await sellerOf({
    ...terms,
    onPaid: async (paid, response, count) => {
      if (paid.payload.type !== "refund")
        return (await terms.onPaid?.(paid, response, count)) ?? false;
      if (refund === "silent") {
        response.destroy();
        return true;
      }
      if (refund === "refuses") {
        await seller.correct(paid, response, { charged: paid.ceiling + 5000n });
        return true;
      }
      const known = seller.books.get(paid.id);
      if (paid.ceiling !== known?.charged) {
        await seller.correct(paid, response);
        return true;
      }
      if (refund === "honest" || refund === "part") {
        const channels = createChannelFixture(world.devnet());
        const { channelConfig: config, voucher } = paid.payload;
        const row = {
          voucher: { channel: config, maxClaimableAmount: paid.ceiling },
          signature: voucher.signature,
          totalClaimed: known.charged,
        };
        await channels.claimSigned([row]);
        const { refundNonce } = await channels.stateOf(config);
        await channels.refundSigned(config, refund === "part" ? 1n : 2n ** 100n, refundNonce);
      }
      seller.sell(paid, response, 0n);
      return true;
    },
  });
  return seller;
}

/** The buyer, with an account that signs transactions. */
const withTransactions = () => ({ account: world.devnet().accounts.buyer });

describe("a refund of a channel", () => {
  it("brings back what was not charged, and frees the rest of the budget", async () => {
    const seller = await sellerThatRefunds("honest");
    const before = await balanceOfBuyer();
    const pay = createFetch();
    await pay(seller.url);
    await pay(seller.url);
    expect((await balanceOfBuyer()) - before).toBe(-10_000n);
    expect(await pay.refundChannel(seller.url)).toMatchObject([
      { state: "refunded", amount: 8000n },
    ]);
    expect((await balanceOfBuyer()) - before).toBe(-2000n);
    expect((await pay.listChannels())[0]).toMatchObject({ balance: 2000n, locked: 0n });
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ state: "nothing" }]);
    // It can be funded again, and its ceilings go on.
    await pay(seller.url);
    expect((await records())[0]).toMatchObject({ ceiling: 3000n, balance: 12_000n });
  });

  it("goes on where another process has forgotten one of the channels meanwhile", async () => {
    const seller = await sellerThatRefunds("honest");
    await createFetch()(seller.url);
    const store = await openStore();
    const [own] = store.list();
    if (own === undefined) throw new Error("No channel");
    const none = { ceiling: 0n, charged: 0n, spent: 0n, balance: 0n, claimed: 0n };
    const gone = `0x${"0".repeat(64)}` as const;
    store.create({ ...own, ...none, id: gone, deposit: undefined });
    expect(store.list().map(({ id }) => id)).toEqual([gone, own.id]);
    const forgetting: typeof fetch = (...args) => {
      store.forgetIfUnused(gone);
      return fetch(...args);
    };
    const pay = createFetch({}, { fetch: forgetting });
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ id: own.id, state: "refunded" }]);
  });

  it("is asked for by a voucher for what was charged, and no more", async () => {
    const seller = await sellerThatRefunds("honest", {
      onPaid: async (paid, response) => {
        await seller.deposit(paid);
        seller.sell(paid, response, 400n);
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    await pay.refundChannel(seller.url);
    expect(seller.paid.at(-1)).toMatchObject({ ceiling: 400n });
    expect((await records())[0]).toMatchObject({ ceiling: 1000n, balance: 400n });
  });

  it("follows a correction by an own signature once, after a lost answer", async () => {
    const seller = await sellerThatRefunds("honest", {
      onPaid: (paid, response, count) => {
        if (count === 1) return false;
        const { ceiling: signed, id } = paid;
        const { signature } = paid.payload.voucher;
        seller.books.set(id, { charged: signed, signed, signature });
        response.destroy();
        return true;
      },
    });
    const pay = createFetch();
    await pay(seller.url);
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "outcome_unclear" });
    expect(await pay.refundChannel(seller.url)).toMatchObject([
      { state: "refunded", amount: 8000n },
    ]);
  });

  for (const kind of ["lies", "refuses", "silent"] as const) {
    it(`is not believed of a seller that ${kind === "silent" ? "is silent" : kind}, and is withdrawn if wanted`, async () => {
      const seller = await sellerThatRefunds(kind);
      const before = await balanceOfBuyer();
      const pay = createFetch({}, withTransactions());
      await pay(seller.url);
      const state = kind === "silent" ? "silent" : "refused";
      expect(await pay.refundChannel(seller.url)).toMatchObject([{ state, amount: 0n }]);
      expect((await records())[0]).toMatchObject({ ceiling: 1000n, isWithdrawing: false });

      const [begun] = await pay.refundChannel(seller.url, { orWithdraw: true });
      expect(begun).toMatchObject({ state: "begun", amount: 9000n });
      const [record] = await records();
      expect(record).toMatchObject({ isWithdrawing: true });
      expect(await onChain(record?.id)).toMatchObject({ pending: 9000n });

      const { id = "0x" } = record ?? {};
      expect(await pay.withdrawChannel(id)).toMatchObject({ state: "waiting", amount: 9000n });
      const snapshot = await world.devnet().snapshot();
      await world.devnet().client.increaseTime({ seconds: 901 });
      await world.devnet().mine();
      expect(await pay.withdrawChannel(id)).toMatchObject({ state: "withdrawn", amount: 9000n });
      expect((await balanceOfBuyer()) - before).toBe(-1000n);
      expect(await pay.withdrawChannel(id)).toMatchObject({ state: "nothing" });
      await world.devnet().revert(snapshot);
    });
  }

  it("is no refund where a part alone comes back, and the rest is withdrawn if wanted", async () => {
    const seller = await sellerThatRefunds("part");
    const pay = createFetch({}, withTransactions());
    await pay(seller.url);
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ state: "refused", amount: 1n }]);
    expect((await pay.listChannels())[0]).toMatchObject({ balance: 9999n, locked: 8999n });
    expect(await pay.refundChannel(seller.url, { orWithdraw: true })).toMatchObject([
      { state: "begun", amount: 8998n, refunded: 1n },
    ]);
  });

  it("names the end of an open deposit, whatever the seller answers", async () => {
    const seller = await sellerThatRefunds("silent", {
      amount: 6000n,
      onPaid: (_paid, response, count) => {
        if (count === 1) return false;
        response.writeHead(402).end("{}");
        return true;
      },
    });
    const pay = createFetch({}, withTransactions());
    await pay(seller.url);
    expect((await pay(seller.url)).status).toBe(402);
    const depositUntil = (await records())[0]?.deposit?.validBefore;
    expect(depositUntil).toBeGreaterThan(0);
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ state: "silent", depositUntil }]);
    expect(await pay.refundChannel(seller.url, { orWithdraw: true })).toMatchObject([
      { state: "begun", depositUntil },
    ]);
  });

  it("is withdrawn where a seller has left its terms", async () => {
    let delay = 900;
    const seller = await sellerThatRefunds("honest", { extra: () => ({ withdrawDelay: delay }) });
    const pay = createFetch({}, withTransactions());
    await pay(seller.url);
    delay = 1000;
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ state: "silent" }]);
    expect(await pay.refundChannel(seller.url, { orWithdraw: true })).toMatchObject([
      { state: "begun" },
    ]);
  });
});

/**
 * A node that shows what a function returned before the last transaction, this many times.
 *
 * @param onLag called before each of these
 */
async function laggingNode(name: string, times: number, onLag?: () => void): Promise<string> {
  const asked = toFunctionSelector(name).slice(2);
  let before: unknown;
  let left = 0;
  const node = await startLyingNode(world.devnet().rpcUrl, ({ method, params }, truth) => {
    if (method === "eth_sendRawTransaction") left = times;
    if (method !== "eth_call" || !JSON.stringify(params).includes(asked)) return undefined;
    if (left === 0) before = truth;
    else {
      left -= 1;
      onLag?.();
    }
    return before;
  });
  return world.keep(node).url;
}

/** Endpoints of which the second one shows a withdrawal that no payer has begun. */
async function besideInventor() {
  const { rpcUrl } = world.devnet();
  const asked = toFunctionSelector("pendingWithdrawals(bytes32)").slice(2);
  const word = (value: bigint) => value.toString(16).padStart(64, "0");
  const inventor = await startLyingNode(rpcUrl, ({ method, params }) =>
    method === "eth_call" && JSON.stringify(params).includes(asked)
      ? `0x${word(1n)}${word(2n ** 40n - 1n)}`
      : undefined,
  );
  return { [plasma]: [rpcUrl, world.keep(inventor).url] };
}

describe("a withdrawal of a channel", () => {
  it("has begun though an endpoint does not show it yet, and no voucher follows", async () => {
    const seller = await sellerThatRefunds("silent");
    const node = await laggingNode("pendingWithdrawals(bytes32)", 2);
    const pay = createFetch({}, { ...withTransactions(), rpcUrls: { [plasma]: node } });
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "begun" });
    expect((await records())[0]).toMatchObject({ isWithdrawing: true });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "unsupported_offer" });
    expect(seller.paid).toHaveLength(1);
  });

  it("is in the file at each moment of the wait for an endpoint to show it", async () => {
    const seller = await sellerThatRefunds("silent");
    const store = await openStore();
    const stored: (boolean | undefined)[] = [];
    const note = () => stored.push(store.list()[0]?.isWithdrawing);
    const node = await laggingNode("pendingWithdrawals(bytes32)", 3, note);
    const pay = createFetch({}, { ...withTransactions(), rpcUrls: { [plasma]: node } });
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    await pay.withdrawChannel(id);
    expect(stored).toEqual([true, true, true]);
  });

  it("that the file does not know is learnt from the chain", async () => {
    const seller = await sellerThatRefunds("silent");
    const pay = createFetch({}, withTransactions());
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    await pay.withdrawChannel(id);
    (await openStore()).update(id, (stored) => ({ ...stored, isWithdrawing: false }));
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "waiting" });
    expect((await records())[0]).toMatchObject({ isWithdrawing: true });
  });

  it("begins though a second endpoint shows one that has not, after a transaction that failed", async () => {
    const seller = await sellerThatRefunds("silent");
    const rpcUrls = await besideInventor();
    const pay = createFetch({}, { ...withTransactions(), rpcUrls });
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    (await openStore()).update(id, (stored) => ({ ...stored, isWithdrawing: true }));
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "begun" });
  });

  it("shows what came back, though an endpoint does not show it yet", async () => {
    const seller = await sellerThatRefunds("silent");
    const node = await laggingNode("channels(bytes32)", 2);
    const pay = createFetch({}, { ...withTransactions(), rpcUrls: { [plasma]: node } });
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    await pay.withdrawChannel(id);
    const snapshot = await world.devnet().snapshot();
    onTestFinished(() => world.devnet().revert(snapshot));
    await world.devnet().client.increaseTime({ seconds: 901 });
    await world.devnet().mine();
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "withdrawn", amount: 9000n });
  });

  it("stops no later purchase once it has ended, though a second endpoint shows one", async () => {
    const seller = await sellerThatRefunds("silent");
    const rpcUrls = await besideInventor();
    let passedMs = 0;
    const now = () => Date.now() + passedMs;
    const pay = createFetch({}, { ...withTransactions(), rpcUrls, now });
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "begun" });
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "unsupported_offer" });
    const snapshot = await world.devnet().snapshot();
    onTestFinished(() => world.devnet().revert(snapshot));
    passedMs = 901_000;
    await world.devnet().client.increaseTime({ seconds: 901 });
    await world.devnet().mine();
    expect(await pay.withdrawChannel(id)).toMatchObject({ state: "withdrawn", amount: 9000n });
    expect((await pay(seller.url)).status).toBe(200);
  });

  it("ends purchases by that channel, and leaves the seller what it has charged", async () => {
    const seller = await sellerThatRefunds("honest");
    const pay = createFetch({}, withTransactions());
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    await pay.withdrawChannel(id);
    const vouchers = seller.paid.length;
    await expect(pay(seller.url)).rejects.toMatchObject({ code: "unsupported_offer" });
    expect(seller.paid).toHaveLength(vouchers);
    const channels = createChannelFixture(world.devnet());
    const [record] = await records();
    if (record === undefined) throw new Error("No channel");
    await channels.claim([await channels.rowOf(record.config, 1000n)]);
    expect(await onChain(id)).toMatchObject({ totalClaimed: 1000n, pending: 9000n });
  });

  it("gives the transaction to an account that signs none", async () => {
    const seller = await sellerThatRefunds("silent");
    const pay = createFetch();
    await pay(seller.url);
    const [{ id = "0x" } = {}] = await records();
    await expect(pay.withdrawChannel(id)).rejects.toMatchObject({
      code: "signing_failed",
      message: expect.stringContaining("0xcf5cf3dc"),
    });
    // Nothing has begun: the channel goes on.
    expect((await pay(seller.url)).status).toBe(200);
  });

  it("is refused for a channel that the file does not have, or of another payer", async () => {
    const seller = await sellerThatRefunds("silent");
    await createFetch()(seller.url);
    const [{ id = "0x" } = {}] = await records();
    const unknown = { code: "channel_unknown" };
    await expect(createFetch().withdrawChannel(`0x${"00".repeat(32)}`)).rejects.toMatchObject(
      unknown,
    );
    const other = createFetch({}, { account: world.devnet().accounts.relayer });
    await expect(other.withdrawChannel(id)).rejects.toMatchObject(unknown);
    expect(await other.listChannels()).toEqual([]);
    await expect(world.createFetch().listChannels()).rejects.toMatchObject(unknown);
  });
});
