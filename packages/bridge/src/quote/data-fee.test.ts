import { testGasPriceOracle } from "@coinslot/devnet";
import { type Address, encodeDeployData } from "viem";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { nativeFee, useBridgeWorld } from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";
import { type RpcProxy, startRpcProxy } from "../testing/rpc-proxy.ts";
import { morphOracle, opStackOracle } from "./data-fee.ts";

const world = useBridgeWorld();
const l1FeePerByte = 100_000_000_000_000n;
const proxies: RpcProxy[] = [];

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

/**
 * Makes a rollup of Ethereum in miniature. The fees of a block are nearly nothing beside those of
 * the rollup.
 */
async function placeOracle(address: Address, operatorFeePerGas = 0n): Promise<void> {
  const args = [l1FeePerByte, operatorFeePerGas] as const;
  const creationCode = encodeDeployData({ ...testGasPriceOracle, args });
  await world().ethereum.place({ address, creationCode });
}

describe("the data fee of a rollup", () => {
  it.each([
    { rollup: "the OP stack", oracle: opStackOracle },
    { rollup: "Morph", oracle: morphOracle },
  ])("is part of a quote for every transaction, on $rollup", async ({ oracle }) => {
    const { createBridge, request, approve } = world();
    const bridge = createBridge();
    const before = await bridge.quoteBridge(request);
    await placeOracle(oracle);
    const both = await bridge.quoteBridge(request);
    await approve(request.amount);
    const sendAlone = await bridge.quoteBridge(request);

    // 484 bytes of calldata, the members of a transaction, its signature; and half as much again.
    const ofSend = sendAlone.fee / l1FeePerByte;
    expect(ofSend).toBeGreaterThan(((484n + 68n) * 3n) / 2n);
    expect(ofSend).toBeLessThan(((484n + 68n + 100n) * 3n) / 2n);
    const ofApproval = both.fee / l1FeePerByte - ofSend;
    expect(ofApproval).toBeGreaterThan(((68n + 68n) * 3n) / 2n);
    expect(ofApproval).toBeLessThan(((68n + 68n + 100n) * 3n) / 2n);
    expect(before.fee).toBeLessThan(sendAlone.fee);
  });

  it("is part of a quote with the operator's fee for gas", async () => {
    const { createBridge, request } = world();
    await placeOracle(opStackOracle);
    const bridge = createBridge();
    const without = await bridge.quoteBridge(request);
    const operatorFeePerGas = 1_000_000_000_000n;
    await placeOracle(opStackOracle, operatorFeePerGas);
    const { fee } = await bridge.quoteBridge(request);
    expect(fee - without.fee).toBeGreaterThan(200_000n * operatorFeePerGas);
  });

  it("is bounded by maxTotalFee too", async () => {
    const { createBridge, request, countSent } = world();
    const { fee } = await createBridge().quoteBridge(request);
    await placeOracle(opStackOracle);
    // Twice the gas, and LayerZero's fee: enough without the data fee.
    const bridge = createBridge({ maxTotalFee: 2n * fee + nativeFee });
    await expectBridgeError(bridge.bridge(request), "total_fee_above_maximum");
    expect(await countSent()).toBe(0);
  });

  it("must be covered by the native balance", async () => {
    const { createBridge, request, countSent, ethereum, buyer } = world();
    const gasAlone = await createBridge().quoteBridge(request);
    await placeOracle(opStackOracle);
    await ethereum.client.setBalance({ address: buyer, value: 2n * gasAlone.fee + nativeFee });
    await expectBridgeError(createBridge().bridge(request), "insufficient_native_balance");
    expect(await countSent()).toBe(0);
  });

  it("is reported in the costs with the gas paid", async () => {
    const { createBridge, request, ethereum } = world();
    const proxy = await startRpcProxy(ethereum.rpcUrl);
    proxies.push(proxy);
    const receipt = z.looseObject({});
    proxy.judge(({ method }) =>
      method === "eth_getTransactionReceipt"
        ? { answer: (given) => ({ ...receipt.parse(given), l1Fee: "0xde0b6b3a7640000" }) }
        : "forward",
    );
    const { fee } = await createBridge({ maxTotalFee: 10n ** 19n }, { rpcUrl: proxy.url }).bridge(
      request,
    );
    // Of the approval, and of the send.
    expect(fee / 10n ** 18n).toBe(2n);
  });

  it("stops the transfer if the oracle does not return it", async () => {
    const { createBridge, request, ethereum, countSent } = world();
    await ethereum.client.setCode({ address: opStackOracle, bytecode: "0x5f5ffd" });
    await expectBridgeError(createBridge().bridge(request), "refused_by_contract");
    expect(await countSent()).toBe(0);
  });
});
