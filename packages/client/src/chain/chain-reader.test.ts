import { text } from "node:stream/consumers";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { plasma, plasmaUsdt0 } from "@coinslot/protocol";
import { encodeFunctionResult, erc20Abi, getAbiItem, pad, toFunctionSelector } from "viem";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { drip } from "../testing/drip.ts";
import { type ChainReader, createChainReader, settledHistorySeconds } from "./chain-reader.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000n });
});
afterAll(() => devnet?.stop());

/** A node that answers calls of a method, or of a function, in its own way. */
async function startLiar(asked: string, result: () => unknown): Promise<string> {
  const server = await listen(async (request, response) => {
    const body = await text(request);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(devnet.rpcUrl, { method: "POST", headers, body });
    const given: unknown = await answer.json();
    const reply = body.includes(asked) ? Object.assign({}, given, { result: result() }) : given;
    response.writeHead(200, headers).end(JSON.stringify(reply));
  });
  onTestFinished(server.close);
  return server.url;
}

function reader(...urls: string[]): ChainReader {
  return readerWithin(5_000, ...urls);
}

function readerWithin(timeoutMs: number, ...urls: string[]): ChainReader {
  const problems: string[] = [];
  const chains = createChainReader({ rpcUrls: { [plasma]: urls }, timeoutMs, problems });
  expect(problems).toEqual([]);
  return chains;
}

const balance = (chains: ChainReader) =>
  chains.readBalance({
    network: plasma,
    asset: plasmaUsdt0.address,
    owner: devnet.accounts.buyer.address,
  });
const balanceOf = toFunctionSelector(getAbiItem({ abi: erc20Abi, name: "balanceOf" }));
const rich = () =>
  encodeFunctionResult({ abi: erc20Abi, functionName: "balanceOf", result: 10n ** 9n });

describe("a balance", () => {
  it("is not read from a node of another chain, and the next node is asked", async () => {
    const other = await startDevnet({ chainId: 1 });
    onTestFinished(() => other.stop());
    await other.mint({
      token: plasmaUsdt0.address,
      to: devnet.accounts.buyer.address,
      amount: 10n ** 9n,
    });
    expect(await balance(reader(other.rpcUrl))).toBeUndefined();
    expect(await balance(reader(other.rpcUrl, devnet.rpcUrl))).toBe(1_000n);
  });

  it("is read from the first of three nodes, whose shares of the time are no integers", async () => {
    expect(await balance(reader(devnet.rpcUrl, devnet.rpcUrl, devnet.rpcUrl))).toBe(1_000n);
  });

  it("is no longer read from a node that changes its chain", async () => {
    let chainId = "0x2611";
    const url = await startLiar("eth_chainId", () => chainId);
    const chains = reader(url);
    expect(await balance(chains)).toBe(1_000n);
    chainId = "0x1";
    expect(await balance(chains)).toBeUndefined();
    expect(await balance(reader(url, devnet.rpcUrl))).toBe(1_000n);
  });

  it("is that of the first answering node", async () => {
    const liar = await startLiar(balanceOf, rich);
    expect(await balance(reader("http://127.0.0.1:1", devnet.rpcUrl))).toBe(1_000n);
    expect(await balance(reader(devnet.rpcUrl, liar))).toBe(1_000n);
  });

  it.each([302, 307])("is not read where a node redirects to, by status %i", async (status) => {
    let visits = 0;
    const elsewhere = await listen((_request, response) => {
      visits += 1;
      response.writeHead(200).end("{}");
    });
    onTestFinished(elsewhere.close);
    const node = await listen((_request, response) => {
      response.writeHead(status, { location: elsewhere.url }).end();
    });
    onTestFinished(node.close);
    expect(await balance(reader(node.url))).toBeUndefined();
    expect(await balance(reader(node.url, devnet.rpcUrl))).toBe(1_000n);
    expect(visits).toBe(0);
  });

  it("is that of the next node where the first one's answer never ends", async () => {
    const dripping = await listen((_request, response) => drip(response));
    onTestFinished(dripping.close);
    expect(await balance(readerWithin(2_000, dripping.url, devnet.rpcUrl))).toBe(1_000n);
  });
});

const state = toFunctionSelector("authorizationState(address,bytes32)");
const used = () => startLiar(state, () => pad("0x1"));
/** Another host with the truth. */
const honest = () => startLiar(state, () => pad("0x0"));

function authorizationId() {
  const { address: payer } = devnet.accounts.buyer;
  return { network: plasma, asset: plasmaUsdt0.address, payer, nonce: pad("0x01") } as const;
}

describe("an expired authorization", () => {
  const endedFor = async (seconds: number) => {
    const { timestamp } = await devnet.client.getBlock();
    return { id: authorizationId(), validBefore: Number(timestamp) - seconds };
  };
  const expired = async (chains: ChainReader) =>
    chains.wasUsed(await endedFor(settledHistorySeconds));

  it("counts as unused only when all nodes agree, on two hosts or more", async () => {
    const [liar, second] = [await used(), await honest()];
    const unended = await endedFor(settledHistorySeconds - 1);
    expect(await reader(devnet.rpcUrl, second).wasUsed(unended)).toBeUndefined();
    expect(await expired(reader(devnet.rpcUrl, second))).toBe(false);
    expect(await expired(reader(devnet.rpcUrl, liar))).toBe(true);
    expect(await expired(reader(liar, devnet.rpcUrl))).toBe(true);
    expect(await expired(reader(devnet.rpcUrl, "http://127.0.0.1:1"))).toBeUndefined();
  });

  it("never counts as unused by one host's answer, and counts as used by it at once", async () => {
    expect(await expired(reader(devnet.rpcUrl))).toBeUndefined();
    expect(await expired(reader(devnet.rpcUrl, `${devnet.rpcUrl}/?other`))).toBeUndefined();
    expect(await expired(reader(await used()))).toBe(true);
  });

  it("never counts as unused by one host's answer on two ports", async () => {
    const urls = [devnet.rpcUrl, await honest()];
    // The unspecified address reaches this machine, and is no loopback address.
    const onOneHost = urls.map((url) => url.replace("127.0.0.1", "0.0.0.0"));
    expect(await expired(reader(...onOneHost))).toBeUndefined();
  });

  it("is unknown from a node of another chain", async () => {
    const elsewhere = await startLiar("eth_chainId", () => "0x1");
    expect(await expired(reader(elsewhere))).toBeUndefined();
    expect(await expired(reader(devnet.rpcUrl, elsewhere))).toBeUndefined();
  });
});

describe("an authorization that has not expired", () => {
  const executable = async (chains: ChainReader, seconds = 60) => {
    const { timestamp } = await devnet.client.getBlock();
    return chains.isExecutable({ id: authorizationId(), validBefore: Number(timestamp) + seconds });
  };

  it("counts as beyond execution only when all nodes agree", async () => {
    const liar = await used();
    expect(await executable(reader(devnet.rpcUrl))).toBe(true);
    expect(await executable(reader(devnet.rpcUrl), -1)).toBe(false);
    expect(await executable(reader(liar, devnet.rpcUrl))).toBe(true);
    expect(await executable(reader(devnet.rpcUrl, liar))).toBe(true);
    expect(await executable(reader(liar, `${liar}/?other`))).toBe(false);
    expect(await executable(reader(liar, "http://127.0.0.1:1"))).toBeUndefined();
  });
});

describe("the chain's time", () => {
  it("comes from each node of the chain, and from none of another", async () => {
    const elsewhere = await startLiar("eth_chainId", () => "0x1");
    const urls = [elsewhere, devnet.rpcUrl, "http://127.0.0.1:1", `${devnet.rpcUrl}/?other`];
    const times = await reader(...urls).readTimes();
    expect(times).toHaveLength(2);
    const { timestamp } = await devnet.client.getBlock();
    for (const time of times) expect(time).toBeGreaterThanOrEqual(Number(timestamp) * 1000);
  });
});
