import { createChannelFixture } from "@coinslot/devnet";
import { findKnownChain, plasma } from "@coinslot/protocol";
import { encodeAbiParameters, toFunctionSelector, toHex } from "viem";
import { describe, expect, it } from "vitest";
import { drip } from "../testing/drip.ts";
import { listen } from "../testing/listen.ts";
import { startLyingNode } from "../testing/lying-node.ts";
import { useChannels } from "../testing/use-channels.ts";

const { world, sellerOf, createFetch, records, onChain } = useChannels();

/** A payer with a channel, whose withdrawals ask a node that lies about fees. */
async function withdrawBy(lie: Parameters<typeof startLyingNode>[1]) {
  const { accounts, client, rpcUrl } = world.devnet();
  const seller = await sellerOf();
  await createFetch()(seller.url);
  const [{ id = "0x" } = {}] = await records();
  const node = world.keep(await startLyingNode(rpcUrl, lie));
  const pay = createFetch({}, { account: accounts.buyer, rpcUrls: { [plasma]: [node.url] } });
  const before = await client.getBalance({ address: accounts.buyer.address });
  const ended = await pay.withdrawChannel(id).catch((error: unknown) => error);
  const after = await client.getBalance({ address: accounts.buyer.address });
  return { ended, paid: before - after };
}

const gwei = 10n ** 9n;

describe("a node that lies to a withdrawal", () => {
  it.each([
    ["tip", "eth_maxPriorityFeePerGas", () => toHex(10_000n * gwei)],
    [
      "base fee",
      "eth_getBlockByNumber",
      (block: unknown) => ({ ...Object(block), baseFeePerGas: toHex(10_000n * gwei) }),
    ],
  ])("about the %s gets no transaction above the chain's cap", async (_what, method, lie) => {
    const { ended, paid } = await withdrawBy((call, truth) =>
      call.method === method ? lie(truth) : undefined,
    );
    expect(ended).toMatchObject({
      code: "chain_unreadable",
      message: expect.stringContaining("0xcf5cf3dc"),
    });
    expect(paid).toBe(0n);
    expect(findKnownChain(plasma)?.maxFeePerGas).toBe(100n * gwei);
  });
});

/** A node by which every channel has this balance, and this much of it claimed. */
async function nodeThatShows(balance: bigint, claimed: bigint): Promise<string> {
  const asked = toFunctionSelector("channels(bytes32)").slice(2);
  const shown = encodeAbiParameters([{ type: "uint256" }, { type: "uint256" }], [balance, claimed]);
  const node = await startLyingNode(world.devnet().rpcUrl, ({ method, params }) =>
    method === "eth_call" && JSON.stringify(params).includes(asked) ? shown : undefined,
  );
  return world.keep(node).url;
}

/** A node by which every channel is empty. */
const denyingNode = () => nodeThatShows(0n, 0n);

describe("a node that denies the balance of a channel", () => {
  it("is outvoted by another one: one deposit is made", async () => {
    const seller = await sellerOf();
    const urls = [await denyingNode(), world.devnet().rpcUrl];
    const pay = createFetch({}, { rpcUrls: { [plasma]: urls } });
    for (let count = 0; count < 4; count += 1) expect((await pay(seller.url)).status).toBe(200);
    const [record] = await records();
    expect(await onChain(record?.id)).toMatchObject({ balance: 10_000n });
  });

  it("has no more locked than `locked`, where it is the only one and the seller wants deposits", async () => {
    const seller = await sellerOf({
      onPaid: ({ payload }, response) => {
        if (payload.type === "deposit") return false;
        response.writeHead(402).end("{}");
        return true;
      },
    });
    const locked = { perHost: "$0.03", inAll: "$0.03" };
    const pay = createFetch({ locked }, { rpcUrls: { [plasma]: [await denyingNode()] } });
    const statuses: number[] = [];
    for (let count = 0; count < 6; count += 1) statuses.push((await pay(seller.url)).status);
    expect(statuses).toEqual([200, 200, 200, 402, 402, 402]);
    const [record] = await records();
    expect(await onChain(record?.id)).toMatchObject({ balance: 30_000n });
    expect(record).toMatchObject({ balance: 30_000n });
  });
});

describe("a node that shows an unexecuted deposit as used", () => {
  it.each([
    ["without its balance", [0n]],
    ["with its balance at first", [10_000n, 0n]],
  ])("%s frees nothing of it: no other deposit is signed", async (_name, balances) => {
    const seller = await sellerOf({
      onPaid: (_paid, response) => {
        response.writeHead(402).end("{}");
        return true;
      },
    });
    const { rpcUrl } = world.devnet();
    const asked = [
      toFunctionSelector("channels(bytes32)"),
      toFunctionSelector("authorizationState(address,bytes32)"),
    ].map((selector) => selector.slice(2));
    let shown = 0n;
    const node = await startLyingNode(rpcUrl, ({ method, params }) => {
      if (method !== "eth_call") return undefined;
      const text = JSON.stringify(params);
      const [channel = "", use = ""] = asked;
      if (text.includes(channel)) return toHex(shown, { size: 32 }) + "0".repeat(64);
      return text.includes(use) ? toHex(1n, { size: 32 }) : undefined;
    });
    const lying = world.keep(node).url;
    const urls = [lying, rpcUrl.replace("127.0.0.1", "localhost")];
    const locked = { perHost: "$0.01", inAll: "$0.01" };
    const pay = createFetch({ locked }, { rpcUrls: { [plasma]: urls } });
    for (shown of [...balances, 0n, 0n]) await pay(seller.url).catch(() => undefined);
    const deposits = seller.paid.flatMap(({ payload }) =>
      payload.type === "deposit"
        ? [
            Object.values(payload.deposit.authorization)
              .map(({ salt }) => salt)
              .join(),
          ]
        : [],
    );
    expect(new Set(deposits).size).toBe(1);
    expect((await records())[0]?.deposit).toMatchObject({ amount: 10_000n });
  });
});

describe("a node whose answers never end once a voucher is paid", () => {
  it("withholds no paid answer", async () => {
    let isPaid = false;
    const node = world.keep(
      await listen(async ({ body }, response) => {
        if (isPaid) return drip(response);
        const headers = { "content-type": "application/json" };
        const answer = await fetch(world.devnet().rpcUrl, { method: "POST", headers, body });
        response.writeHead(200, headers).end(await answer.text());
      }),
    );
    const seller = await sellerOf({
      onPaid: () => {
        isPaid = true;
        return false;
      },
    });
    const rpcUrls = { [plasma]: [node.url] };
    const response = await createFetch({}, { rpcUrls, balanceTimeoutMs: 1_000 })(seller.url);
    expect(await response.text()).toBe('{"forecast":"sun"}');
  });
});

describe("a balance that a seller has given back unasked", () => {
  it("is believed of one host once a refund is asked for, and the channel is funded again", async () => {
    const seller = await sellerOf();
    const pay = createFetch({ locked: { perHost: "$0.02" } });
    await pay(seller.url);
    const channels = createChannelFixture(world.devnet());
    const [{ config, id } = {}] = await records();
    if (config === undefined) throw new Error("No channel");
    await channels.claim([await channels.rowOf(config, 1000n)]);
    await channels.refundSigned(config, 2n ** 100n, 0n);
    expect(await onChain(id)).toMatchObject({ balance: 1000n });
    expect(await pay.refundChannel(seller.url)).toMatchObject([{ state: "nothing" }]);
    expect((await records())[0]).toMatchObject({ balance: 1000n, charged: 1000n });
    expect((await pay(seller.url)).status).toBe(200);
    expect(await onChain(id)).toMatchObject({ balance: 11_000n });
  });
});

describe("a node that shows more as claimed than was signed", () => {
  const urlsOf = async () => [await nodeThatShows(10_000n, 9000n), world.devnet().rpcUrl];

  it("is outvoted by another one at the first voucher of a channel", async () => {
    const seller = await sellerOf();
    const pay = createFetch({}, { rpcUrls: { [plasma]: await urlsOf() } });
    await pay(seller.url);
    expect(seller.paid.map(({ ceiling }) => ceiling)).toEqual([1000n]);
  });

  it("gets no voucher for that while another one is away", async () => {
    const seller = await sellerOf();
    const [lying = ""] = await urlsOf();
    const pay = createFetch({}, { rpcUrls: { [plasma]: [lying, "http://127.0.0.1:9"] } });
    await expect(pay(seller.url)).rejects.toThrow("not every endpoint returned what was claimed");
    expect(seller.paid).toEqual([]);
  });

  it("is outvoted by another one after a rejection", async () => {
    const seller = await sellerOf({
      onPaid: (_paid, response, count) => {
        if (count === 1) return false;
        response.writeHead(402).end("{}");
        return true;
      },
    });
    await createFetch()(seller.url);
    const pay = createFetch({}, { rpcUrls: { [plasma]: await urlsOf() } });
    expect((await pay(seller.url)).status).toBe(402);
    expect(seller.paid.map(({ ceiling }) => ceiling)).toEqual([1000n, 2000n]);
  });
});
