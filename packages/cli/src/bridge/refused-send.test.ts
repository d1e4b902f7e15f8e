import { text } from "node:stream/consumers";
import { usdt0Chains } from "@coinslot/bridge";
import { systemClock } from "@coinslot/chain";
import {
  type Devnet,
  type LayerZero,
  listen,
  startDevnet,
  startLayerZero,
  testOft,
  testTether,
} from "@coinslot/devnet";
import { type Address, encodeFunctionData, pad } from "viem";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import * as z from "zod";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
const usdt0: Address = "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb";

let ethereum: Devnet;
let plasma: Devnet;
let layerZero: LayerZero;

beforeAll(async () => {
  [ethereum, plasma] = await Promise.all([
    startDevnet({ chainId: 1 }),
    startDevnet({ chainId: 9745 }),
  ]);
  layerZero = await startLayerZero({
    chains: [
      { devnet: ethereum, eid: 30101 },
      { devnet: plasma, eid: 30383 },
    ],
  });
  await layerZero.connect([
    { devnet: ethereum, oft: contractOf("ethereum", "oft"), token: usdt, locks: true },
    { devnet: plasma, oft: contractOf("plasma", "oft"), token: usdt0, locks: false },
  ]);
  const to = ethereum.accounts.buyer.address;
  await ethereum.mint({ token: usdt, to, amount: 100_000_000n });
});
afterAll(() => Promise.all([ethereum?.stop(), plasma?.stop()]));

function contractOf(key: string, kind: "oft" | "legacyMesh"): Address {
  const chain = usdt0Chains.find((each) => each.key === key);
  const contract = chain?.type === "evm" ? chain.contracts[kind] : undefined;
  if (contract === undefined) throw new Error(`The table has no ${kind} on ${key}`);
  return contract;
}

/** Allows a contract to take what is sent, for a send of one transaction. */
async function approve(kind: "oft" | "legacyMesh"): Promise<void> {
  const spender = contractOf("ethereum", kind);
  const { buyer } = ethereum.accounts;
  const allowed = await ethereum.client.readContract({
    address: usdt,
    abi: testTether.abi,
    functionName: "allowance",
    args: [buyer.address, spender],
  });
  if (allowed > 0n) return;
  const hash = await ethereum.client.writeContract({
    account: buyer,
    address: usdt,
    abi: testTether.abi,
    functionName: "approve",
    args: [spender, 5_000_000n],
  });
  await ethereum.client.waitForTransactionReceipt({ hash });
}

const callSchema = z.looseObject({ id: z.number(), method: z.string() });

/** Two hosts, which are one node by two names. It refuses broadcasts while `isRefusing`. */
async function startRefusers(isRefusing: () => boolean): Promise<string[]> {
  async function answer(json: unknown): Promise<unknown> {
    const call = callSchema.parse(json);
    if (call.method === "eth_sendRawTransaction" && isRefusing()) {
      const error = { code: -32000, message: "insufficient funds for gas" };
      return { jsonrpc: "2.0", id: call.id, error };
    }
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(call) };
    return (await fetch(ethereum.rpcUrl, init)).json();
  }
  const server = await listen(async (request, response) => {
    const json: unknown = JSON.parse(await text(request));
    const answers = await (Array.isArray(json) ? Promise.all(json.map(answer)) : answer(json));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers));
  });
  onTestFinished(server.close);
  return [server.url, server.url.replace("127.0.0.1", "localhost")];
}

const wallet = () => ({ WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey });

function sourceUrls(rpcUrls: string[]): string[] {
  return rpcUrls.flatMap((url) => ["--rpc-url", url]);
}

function send(rpcUrls: string[], ...more: string[]) {
  const fees = ["--max-bridge-fee", "0.0001", "--max-total-fee", "1", "--yes"];
  const request = ["--token", usdt, "--amount", "5", ...fees, ...more];
  return runCoinslot(["bridge", "send", ...sourceUrls(rpcUrls), ...request], { env: wallet() });
}

/** Runs the command that an error has printed, with RPC URLs. */
function runPrinted(err: string, urls: string[]) {
  const printed = /coinslot (bridge track .*)/.exec(err)?.[1];
  if (printed === undefined) throw new Error("No command was printed");
  return runCoinslot([...printed.split(" "), ...urls]);
}

it("a refused send ends by the printed command once another transaction has its nonce", async () => {
  await approve("oft");
  const rpcUrls = await startRefusers(() => true);
  const sent = await send(rpcUrls, "--to", "plasma");
  expect(sent.code).toBe(exitCode.unclear);
  expect(sent.err).toContain("insufficient funds for gas");

  const { buyer } = ethereum.accounts;
  const hash = await ethereum.client.sendTransaction({ account: buyer, to: buyer.address });
  await ethereum.client.waitForTransactionReceipt({ hash });
  const urls = [...sourceUrls(rpcUrls), "--target-rpc-url", plasma.rpcUrl];
  const early = await runPrinted(sent.err, [...urls, "--timeout", "0.1"]);
  expect(early.code).toBe(exitCode.unclear);
  expect(early.err).toContain("insufficient funds for gas");

  const { now } = systemClock;
  const start = now();
  // Each second is a minute.
  const clock = vi.spyOn(systemClock, "now").mockImplementation(() => start + 60 * (now() - start));
  onTestFinished(() => clock.mockRestore());
  const late = await runPrinted(sent.err, urls);
  expect(late.err).toContain("has replaced");
  expect(late.code).toBe(exitCode.failed);
}, 30_000);

it("a refused send to a chain outside the EVM is sent again by the printed command", async () => {
  const oft = contractOf("ethereum", "legacyMesh");
  await layerZero.connect([{ devnet: ethereum, oft, token: usdt, locks: true }]);
  const { abi } = testOft;
  const peer = [30420, pad("0x01")] as const;
  const data = encodeFunctionData({ abi, functionName: "setPeer", args: peer });
  await ethereum.send({ to: oft, data });
  await approve("legacyMesh");
  let isRefusing = true;
  const rpcUrls = await startRefusers(() => isRefusing);
  const recipient = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t";
  const sent = await send(rpcUrls, "--to", "tron", "--recipient", recipient);
  expect(sent.code).toBe(exitCode.unclear);
  isRefusing = false;
  const tracked = await runPrinted(sent.err, sourceUrls(rpcUrls));
  expect(tracked.code).toBe(exitCode.unclear);
  expect(tracked.err).toMatch(/LayerZero message 0x[0-9a-f]{64}/);
}, 30_000);

describe("coinslot bridge track", () => {
  const hash = `0x${"1".repeat(64)}`;

  it.each(["0x1234", "1234", "0x"])("refuses %s as the bytes of another hash", async (bytes) => {
    const track = ["bridge", "track", hash, "--to", "plasma", "--transaction", bytes];
    const urls = ["--rpc-url", ethereum.rpcUrl, "--target-rpc-url", plasma.rpcUrl];
    const ran = await runCoinslot([...track, ...urls]);
    expect(ran.code).toBe(exitCode.usage);
    expect(ran.err).toContain("--transaction");
  });

  it("refuses the transaction of another chain as a usage error", async () => {
    await approve("oft");
    const sent = await send(await startRefusers(() => true), "--to", "plasma");
    const urls = ["--rpc-url", plasma.rpcUrl, "--target-rpc-url", plasma.rpcUrl];
    const ran = await runPrinted(sent.err, urls);
    expect(ran.code).toBe(exitCode.usage);
  });

  it("needs an RPC URL of an EVM target", async () => {
    const ran = await runCoinslot([
      ...["bridge", "track", hash],
      ...["--to", "plasma", "--rpc-url", ethereum.rpcUrl],
    ]);
    expect(ran.code).toBe(exitCode.usage);
    expect(ran.err).toContain("--target-rpc-url");
  });
});
