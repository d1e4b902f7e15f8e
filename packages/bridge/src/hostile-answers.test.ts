import {
  type Address,
  encodeFunctionResult,
  type Hex,
  stringToHex,
  toFunctionSelector,
} from "viem";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { oftAbi } from "./chains/oft-abi.ts";
import { usdt, useBridgeWorld } from "./testing/bridge-world.ts";
import { expectBridgeError } from "./testing/expect-bridge-error.ts";
import {
  type RpcProxy,
  type RpcProxyCall,
  startRpcProxy,
  type Verdict,
} from "./testing/rpc-proxy.ts";

const world = useBridgeWorld();
const proxies: RpcProxy[] = [];

afterEach(async () => {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function startProxy(upstream: string, judge: (call: RpcProxyCall) => Verdict) {
  const proxy = await startRpcProxy(upstream);
  proxies.push(proxy);
  proxy.judge(judge);
  return proxy.url;
}

const callSchema = z.tuple([z.looseObject({ data: z.string().optional() })]).rest(z.unknown());

/** True for a call of this function of a contract. */
function asksFor(signature: string, { method, params }: RpcProxyCall): boolean {
  if (method !== "eth_call") return false;
  return callSchema.parse(params)[0].data?.startsWith(toFunctionSelector(signature)) ?? false;
}

const quoteOft = "quoteOFT((uint32,bytes32,uint256,uint256,bytes,bytes,bytes))";

/** A bridge whose OFT answers `quoteOFT` so. */
async function bridgeQuoted(amountSentLD: bigint, amountReceivedLD: bigint) {
  const { ethereum, createBridge } = world();
  const result = [
    { minAmountLD: 0n, maxAmountLD: 2n ** 64n },
    [],
    { amountSentLD, amountReceivedLD },
  ] as const;
  const answer = () => encodeFunctionResult({ abi: oftAbi, functionName: "quoteOFT", result });
  const rpcUrl = await startProxy(ethereum.rpcUrl, (call) =>
    asksFor(quoteOft, call) ? { answer } : "forward",
  );
  return createBridge({}, { rpcUrl });
}

describe("a dishonest OFT contract", () => {
  it("gets no allowance above the amount to send", async () => {
    const { request, countSent } = world();
    const bridge = await bridgeQuoted(request.amount + 1n, request.amount);
    const error = await expectBridgeError(bridge.bridge(request), "invalid_contract");
    expect(error.message).toContain(`${request.amount + 1n}`);
    expect(await countSent()).toBe(0);
  });

  it("is refused with a promise above its delivery", async () => {
    const { request, countSent, approve } = world();
    await approve(request.amount);
    const bridge = await bridgeQuoted(request.amount, request.amount * 2n);
    const error = await expectBridgeError(bridge.bridge(request), "refused_by_contract");
    expect(error.message).toContain("SlippageExceeded");
    expect(await countSent()).toBe(1);
  });

  it("has its revert reason shortened and stripped of control characters", async () => {
    const { ethereum, request, createBridge } = world();
    const reason = stringToHex("\u001b[2Jall is well\n".repeat(100)).slice(2);
    const length = (reason.length / 2).toString(16).padStart(64, "0");
    const data: Hex = `0x08c379a0${"20".padStart(64, "0")}${length}${reason}`;
    const rpcUrl = await startProxy(ethereum.rpcUrl, (call) =>
      asksFor(quoteOft, call)
        ? { error: { code: 3, message: "execution reverted", data } }
        : "forward",
    );
    const quote = createBridge({}, { rpcUrl }).quoteBridge(request);
    const { message } = await expectBridgeError(quote, "refused_by_contract");
    expect(message).toContain("all is well");
    expect(message).not.toMatch(/\p{Cc}/u);
    expect(message.length).toBeLessThan(500);
  });
});

describe("a node that answers with malformed data", () => {
  it.each([
    ["eth_getBalance", "0x"],
    ["eth_getBalance", "twelve"],
    ["eth_getTransactionCount", { nonce: 1 }],
    ["eth_call", "0x01"],
    ["eth_call", `0x${"ff".repeat(32)}`],
    ["eth_getBlockByNumber", null],
    ["eth_maxPriorityFeePerGas", "-1"],
    ["eth_estimateGas", []],
    ["eth_getCode", 7],
  ])(
    "stops a transfer by its answer to %s, such as %j, and is reported",
    async (method, nonsense) => {
      const { ethereum, request, createBridge, countSent } = world();
      const rpcUrl = await startProxy(ethereum.rpcUrl, (call) =>
        call.method === method ? { answer: () => nonsense } : "forward",
      );
      const bridge = createBridge({}, { rpcUrl });
      const error = await bridge.bridge(request).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: "BridgeError", moneyMayHaveMoved: false });
      expect(await countSent()).toBe(0);
    },
  );

  it("leaves the outcome of the send unclear by an answer to a receipt request", async () => {
    const { ethereum, request, createBridge, approve } = world();
    await approve(request.amount);
    const receipt = z.looseObject({});
    const answer = (given: unknown) =>
      given === null ? null : { ...receipt.parse(given), logs: null };
    const rpcUrl = await startProxy(ethereum.rpcUrl, ({ method }) =>
      method === "eth_getTransactionReceipt" ? { answer } : "forward",
    );
    const error = await expectBridgeError(
      createBridge({}, { rpcUrl }).bridge(request),
      "outcome_unclear",
    );
    expect(error.hash).toBeDefined();
  });

  it("leaves the outcome unclear by the receipt of another transfer, too", async () => {
    const { ethereum, request, createBridge, approve } = world();
    const { hash: other } = await createBridge().bridge(request);
    await approve(request.amount);
    const rpcUrl = await startProxy(ethereum.rpcUrl, ({ method }) =>
      method === "eth_getTransactionReceipt" ? { params: [other] } : "forward",
    );
    const bridge = createBridge({ receiptTimeoutMs: 50 }, { rpcUrl });
    const error = await expectBridgeError(bridge.bridge(request), "outcome_unclear");
    expect(error.hash).not.toBe(other);
  });

  it("proves no arrival by the logs of other messages", async () => {
    const { plasma, layerZero, request, createBridge } = world();
    const bridge = createBridge();
    await bridge.bridge(request);
    await layerZero.deliver();
    const second = await bridge.bridge(request);
    const filter = z.tuple([z.looseObject({ topics: z.array(z.unknown()) })]);
    const rpcUrl = await startProxy(plasma.rpcUrl, ({ method, params }) => {
      if (method !== "eth_getLogs") return "forward";
      const [{ topics, ...rest }] = filter.parse(params);
      return { params: [{ ...rest, topics: topics.slice(0, 1) }] };
    });
    const { hash } = second;
    const watching = createBridge({ targetRpcUrls: { plasma: rpcUrl } });
    const options = { hash, confirmations: 1, timeoutMs: 50, pollIntervalMs: 10 };
    await expectBridgeError(watching.track(options), "delivery_timeout");
    await layerZero.deliver();
    expect((await watching.track({ ...options, timeoutMs: 5_000 })).guid).toBe(second.guid);
  });

  it("proves no arrival by the logs of another contract either", async () => {
    const { plasma, layerZero, request, createBridge } = world();
    const { hash } = await createBridge().bridge(request);
    await layerZero.deliver();
    const address: Address = usdt;
    const logs = z.array(z.looseObject({}));
    const rpcUrl = await startProxy(plasma.rpcUrl, ({ method }) =>
      method === "eth_getLogs"
        ? { answer: (given) => logs.parse(given).map((log) => ({ ...log, address })) }
        : "forward",
    );
    const watching = createBridge({ targetRpcUrls: { plasma: rpcUrl } });
    const options = { hash, confirmations: 1, timeoutMs: 50, pollIntervalMs: 10 };
    await expectBridgeError(watching.track(options), "delivery_timeout");
  });
});
