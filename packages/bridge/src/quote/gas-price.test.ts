import { type Devnet, startDevnet } from "@coinslot/devnet";
import { createPublicClient, custom, http } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { maxPerGas, readGasPrice } from "./gas-price.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000n });
  await devnet.mine();
});
afterAll(() => devnet.stop());

describe("the gas offer", () => {
  it("is the node's tip, and room for three full blocks", async () => {
    const client = createPublicClient({ transport: http(devnet.rpcUrl) });
    const tip = await client.estimateMaxPriorityFeePerGas();
    const { gasPrice, minPerGas } = await readGasPrice(client, 9745);
    expect(gasPrice).toEqual({
      type: "eip1559",
      maxFeePerGas: 1_500n + tip,
      maxPriorityFeePerGas: tip,
    });
    expect(maxPerGas(gasPrice)).toBe(1_500n + tip);
    expect(minPerGas).toBe(1_125n + tip);
  });

  it("has no tip on Stable, which ignores it", async () => {
    const client = createPublicClient({ transport: http(devnet.rpcUrl) });
    const { gasPrice } = await readGasPrice(client, 988);
    expect(gasPrice).toEqual({ type: "eip1559", maxFeePerGas: 1_500n, maxPriorityFeePerGas: 0n });
  });

  it("is a gas price plus a quarter on a chain without a base fee", async () => {
    const node = createPublicClient({ transport: http(devnet.rpcUrl) });
    const older = custom({
      async request({ method, params }) {
        if (method === "eth_gasPrice") return "0x64";
        const answer: object = await node.request({ method, params });
        return { ...answer, baseFeePerGas: undefined };
      },
    });
    const { gasPrice, minPerGas } = await readGasPrice(
      createPublicClient({ transport: older }),
      30,
    );
    expect(gasPrice).toEqual({ type: "legacy", gasPrice: 125n });
    expect(maxPerGas(gasPrice)).toBe(125n);
    expect(minPerGas).toBe(100n);
  });
});
