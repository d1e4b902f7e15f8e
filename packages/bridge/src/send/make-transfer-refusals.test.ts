import { startDevnet } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import {
  contractOf,
  funds,
  nativeFee,
  usdt,
  usdt0,
  useBridgeWorld,
  xaut,
} from "../testing/bridge-world.ts";
import { expectBridgeError } from "../testing/expect-bridge-error.ts";

const world = useBridgeWorld();
const adapter = contractOf("ethereum", "oft");

describe("a transfer request that cannot be served", () => {
  const someone = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
  it.each([
    ["unknown_target_chain", { targetChain: "tempo" }],
    ["unknown_target_chain", { targetChain: "Plasma" }],
    ["same_chain", { targetChain: "ethereum" }],
    ["invalid_recipient", { recipient: "0x3c44CdDdB6a900fa2b585dd299e03d12FA4293BC" }],
    ["invalid_recipient", { targetChain: "tron", recipient: someone }],
    ["invalid_token", { token: "USDT" }],
    ["invalid_token", { token: "0xdac17F958D2ee523a2206206994597C13D831ec7" }],
    ["invalid_contract", { oftContractAddress: "0x6C96" }],
    // An address without a contract, and a contract that is not an OFT.
    ["invalid_contract", { oftContractAddress: someone }],
    ["invalid_contract", { oftContractAddress: usdt }],
    // Of another token.
    ["no_route", { oftContractAddress: contractOf("ethereum", "xautOft") }],
    // The legacy mesh does not reach Plasma, and gold does not go to Berachain.
    ["no_route", { oftContractAddress: contractOf("ethereum", "legacyMesh") }],
    ["no_route", { targetChain: "berachain", token: xaut }],
    ["no_route", { token: usdt0 }],
    ["amount_too_small", { amount: 0n }],
    ["amount_too_small", { amount: -5n }],
    ["insufficient_balance", { amount: funds + 1n }],
    ["amount_too_large", { amount: 2n ** 64n }],
  ])("is refused with %s for %o", async (code, change) => {
    const { request, createBridge, countSent } = world();
    const transfer = createBridge().bridge({ ...request, ...change });
    await expectBridgeError(transfer, code);
    expect(await countSent()).toBe(0);
  });
});

describe("a transfer before any transaction", () => {
  it("is refused above the contract's limit per transfer", async () => {
    const { ethereum, request, configure, createBridge } = world();
    await configure(ethereum, adapter, { functionName: "setLimit", args: [100n, 6_000_000n] });
    const bridge = createBridge();
    const quote = await bridge.quoteBridge(request);
    expect(quote.limits).toEqual({ min: 100n, max: 6_000_000n });
    const quoteOf = (amount: bigint) => bridge.quoteBridge({ ...request, amount });
    await expectBridgeError(quoteOf(99n), "amount_too_small");
    await quoteOf(100n);
    await quoteOf(6_000_000n);
    await expectBridgeError(quoteOf(6_000_001n), "amount_too_large");
  });

  it("is refused when it would lose more than 1 of 1000", async () => {
    const { ethereum, request, configure, createBridge } = world();
    const bridge = createBridge();
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [10n] });
    expect((await bridge.quoteBridge(request)).amountReceived).toBe(4_995_000n);
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [11n] });
    await expectBridgeError(bridge.quoteBridge(request), "loss_too_large");
  });

  it("is refused when less would arrive than agreed, and not when exactly that much would", async () => {
    const { ethereum, request, configure, createBridge, countSent, approve } = world();
    await approve(request.amount);
    const bridge = createBridge();
    const agreed = await bridge.quoteBridge(request);
    const { amountReceived } = agreed;
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [1n] });
    await expectBridgeError(bridge.bridge(request, { agreed }), "terms_changed");
    expect(await countSent()).toBe(1);
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [0n] });
    expect(await bridge.bridge(request, { agreed })).toMatchObject({ amountReceived });
  });

  it("is refused when the fee consumes the whole amount", async () => {
    const { ethereum, request, configure, createBridge } = world();
    await configure(ethereum, adapter, { functionName: "setFeeBps", args: [10_000n] });
    await expectBridgeError(createBridge().quoteBridge(request), "amount_too_small");
  });

  it("is refused when LayerZero's fee is above bridgeMaxFee, and not when it equals it", async () => {
    const { request, createBridge, countSent } = world();
    const tooDear = createBridge({ bridgeMaxFee: nativeFee - 1n });
    await expectBridgeError(tooDear.bridge(request), "bridge_fee_above_maximum");
    expect(await countSent()).toBe(0);
    await createBridge({ bridgeMaxFee: nativeFee }).bridge(request);
  });

  it("is refused when gas and fee together exceed maxTotalFee, and not when they equal it", async () => {
    const { ethereum, request, createBridge, approve } = world();
    await approve(5_000_000n);
    await ethereum.client.setNextBlockBaseFeePerGas({ baseFeePerGas: 1_000_000_000n });
    await ethereum.mine();
    const { fee, bridgeFee } = await createBridge().quoteBridge(request);
    // The balance also lacks the room for the next blocks, a third of the gas offer.
    const tooDear = createBridge({ maxTotalFee: fee / 2n + bridgeFee });
    await expectBridgeError(tooDear.bridge(request), "total_fee_above_maximum");
    await createBridge({ maxTotalFee: fee + bridgeFee }).bridge(request);
  });

  it("is refused when the fee has risen during the approval", async () => {
    const { ethereum, layerZero, request, createBridge, allowance, countSent } = world();
    const transfer = createBridge().bridge(request, {
      async onProgress({ state }) {
        if (state === "approved") await layerZero.setNativeFee(ethereum, nativeFee + 1n);
      },
    });
    await expectBridgeError(transfer, "bridge_fee_above_maximum");
    expect(await countSent()).toBe(1);
    expect(await allowance()).toBe(5_000_000n);
  });

  it("is refused when the approval's gas has used up the room below maxTotalFee", async () => {
    const { ethereum, layerZero, request, createBridge, countSent } = world();
    const maxTotalFee = nativeFee * 100n;
    const bridge = createBridge({ bridgeMaxFee: maxTotalFee, maxTotalFee });
    const transfer = bridge.bridge(request, {
      async onProgress({ state }) {
        if (state !== "approved") return;
        const { fee } = await bridge.quoteBridge(request);
        // Blocks that are nearly empty make gas no dearer, so the send alone stays below.
        await layerZero.setNativeFee(ethereum, maxTotalFee - fee);
        const after = await bridge.quoteBridge(request);
        expect(after.fee + after.bridgeFee).toBeLessThanOrEqual(maxTotalFee);
      },
    });
    await expectBridgeError(transfer, "total_fee_above_maximum");
    expect(await countSent()).toBe(1);
  });

  it.each([0n, nativeFee - 1n, nativeFee + 1n])(
    "is refused when the account has %s for gas and fee",
    async (value) => {
      const { ethereum, buyer, request, createBridge, countSent } = world();
      await ethereum.client.setBalance({ address: buyer, value });
      // A quote returns the costs.
      expect((await createBridge().quoteBridge(request)).feeBasis).toBe("estimate");
      await expectBridgeError(createBridge().bridge(request), "insufficient_native_balance");
      expect(await countSent()).toBe(0);
    },
  );

  it("is refused when the account is an address only, which may request quotes", async () => {
    const { buyer, request, createBridge } = world();
    const bridge = createBridge({ account: buyer });
    expect((await bridge.quoteBridge(request)).bridgeFee).toBe(nativeFee);
    await expectBridgeError(bridge.bridge(request), "read_only_account");
  });

  it("is refused when the source chain is unknown", async () => {
    const { request, createBridge } = world();
    const stranger = await startDevnet({ chainId: 31337 });
    try {
      const bridge = createBridge({}, { rpcUrl: stranger.rpcUrl });
      await expectBridgeError(bridge.bridge(request), "unknown_source_chain");
    } finally {
      await stranger.stop();
    }
  });

  it("is refused when the contracts are paused", async () => {
    const { ethereum, request, configure, createBridge, countSent } = world();
    await configure(ethereum, adapter, { functionName: "setPaused", args: [true] });
    const error = await expectBridgeError(createBridge().bridge(request), "refused_by_contract");
    expect(error.message).toContain("EnforcedPause()");
    expect(await countSent()).toBe(0);
  });

  it("is refused when the gas on arrival is unknown", async () => {
    const { ethereum, request, configure, createBridge } = world();
    await configure(ethereum, adapter, { functionName: "setEnforcedOptions", args: ["0x"] });
    const error = await expectBridgeError(createBridge().bridge(request), "refused_by_contract");
    expect(error.message).toContain("Executor_ZeroLzReceiveGasProvided()");
  });

  it("is refused when the account does not sign", async () => {
    const { ethereum, request, createBridge } = world();
    const refusal = new Error("declined on the device");
    const { buyer } = ethereum.accounts;
    const account = { address: buyer.address, signTransaction: () => Promise.reject(refusal) };
    const error = await expectBridgeError(
      createBridge({ account }).bridge(request),
      "signing_failed",
    );
    expect(error.cause).toBe(refusal);
  });
});
