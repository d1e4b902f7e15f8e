import { text } from "node:stream/consumers";
import { usdt0Chains } from "@coinslot/bridge";
import { type Devnet, type LayerZero, listen, startDevnet, startLayerZero } from "@coinslot/devnet";
import { type Address, toHex } from "viem";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { exitCode } from "../exit-code.ts";
import { runCoinslot } from "../testing/run-coinslot.ts";

const usdt: Address = "0xdAC17F958D2ee523a2206206994597C13D831ec7";
const usdt0: Address = "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb";

let ethereum: Devnet;
let layerZero: LayerZero;

beforeAll(async () => {
  const [source, plasma] = await Promise.all([
    startDevnet({ chainId: 1 }),
    startDevnet({ chainId: 9745 }),
  ]);
  ethereum = source;
  layerZero = await startLayerZero({
    chains: [
      { devnet: ethereum, eid: 30101 },
      { devnet: plasma, eid: 30383 },
    ],
  });
  await layerZero.connect([
    { devnet: ethereum, oft: oftOf("ethereum"), token: usdt, locks: true },
    { devnet: plasma, oft: oftOf("plasma"), token: usdt0, locks: false },
  ]);
  const to = ethereum.accounts.buyer.address;
  await ethereum.mint({ token: usdt, to, amount: 100_000_000n });
  return () => plasma.stop();
});
afterAll(() => ethereum?.stop());

beforeEach(async () => {
  const id = await ethereum.snapshot();
  onTestFinished(async () => {
    await ethereum.revert(id);
  });
});

function oftOf(key: string): Address {
  const chain = usdt0Chains.find((each) => each.key === key);
  const oft = chain?.type === "evm" ? chain.contracts.oft : undefined;
  if (oft === undefined) throw new Error(`The table has no OFT on ${key}`);
  return oft;
}

const callSchema = z.looseObject({ method: z.string() });
const answerSchema = z.looseObject({ result: z.unknown() });
const headerSchema = z.looseObject({ baseFeePerGas: z.string() });

/** A node that multiplies the base fee, and may do so from some moment on. */
async function startDearNode(timesNow: () => bigint): Promise<string> {
  async function answer(call: unknown): Promise<unknown> {
    const headers = { "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify(call) };
    const given = answerSchema.parse(await (await fetch(ethereum.rpcUrl, init)).json());
    if (callSchema.parse(call).method !== "eth_getBlockByNumber") return given;
    const header = headerSchema.parse(given.result);
    const baseFeePerGas = toHex(BigInt(header.baseFeePerGas) * timesNow());
    return { ...given, result: { ...header, baseFeePerGas } };
  }
  const server = await listen(async (request, response) => {
    const json: unknown = JSON.parse(await text(request));
    const answers = await (Array.isArray(json) ? Promise.all(json.map(answer)) : answer(json));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers));
  });
  onTestFinished(server.close);
  return server.url;
}

function send(rpcUrl: string, answers: (question: string) => boolean, ...more: string[]) {
  const request = ["--to", "plasma", "--token", usdt, "--amount", "5"];
  const args = ["bridge", "send", "--rpc-url", rpcUrl, ...request, "--max-bridge-fee", "0.0001"];
  const env = { WALLET_PRIVATE_KEY: ethereum.accounts.buyer.privateKey };
  return runCoinslot([...args, ...more], { env, answers });
}

function countSent(): Promise<number> {
  return ethereum.client.getTransactionCount({ address: ethereum.accounts.buyer.address });
}

describe("coinslot bridge send", () => {
  it("shows the maximum costs, and prompts again once a node raises the gas price", async () => {
    let times = 1n;
    const rpcUrl = await startDearNode(() => times);
    const before = await countSent();
    let asked = 0;
    const { code, err } = await send(rpcUrl, () => {
      asked += 1;
      times = 10_000n;
      return asked === 1;
    });
    expect(asked).toBe(2);
    expect(err).toMatch(/changed: Gas and LayerZero's fee may cost .* Nothing was sent/);
    const totals = [...err.matchAll(/in all +([0-9.]+) ETH at most/g)].map(([, total]) => total);
    expect(totals).toHaveLength(2);
    expect(Number(totals[1])).toBeGreaterThan(Number(totals[0]) * 1_000);
    expect(code).toBe(exitCode.usage);
    expect(await countSent()).toBe(before);
  });

  it("pays no more than shown with --yes, and sends nothing above it", async () => {
    // The first quote is honest, and later ones are not.
    let blocks = 0;
    const rpcUrl = await startDearNode(() => {
      blocks += 1;
      return blocks === 1 ? 1n : 10_000n;
    });
    const before = await countSent();
    const { code, err } = await send(rpcUrl, () => true, "--yes", "--max-total-fee", "5");
    expect(err).toMatch(/error: Gas and LayerZero's fee may cost [0-9.]+ .* at most [0-9.]+ were/);
    expect(err).toContain("Nothing was sent");
    expect(code).toBe(exitCode.failed);
    expect(await countSent()).toBe(before);
  });

  it("needs a bound for all costs with --yes", async () => {
    const { code, err } = await send(ethereum.rpcUrl, () => true, "--yes");
    expect(err).toContain("Give --max-total-fee with --yes");
    expect(code).toBe(exitCode.usage);
  });
});
