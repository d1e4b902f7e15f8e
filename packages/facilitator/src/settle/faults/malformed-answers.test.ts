import { expect, it, onTestFinished } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { settle } from "../../testing/settling-actions.ts";
import { startSettlingDevnet } from "../../testing/settling-devnet.ts";

it.each([
  { method: "eth_call", result: "no hex" },
  // Hex, and no answer of the simulator.
  { method: "eth_call", result: "0x1234" },
  { method: "eth_call", result: null },
  { method: "eth_maxPriorityFeePerGas", result: "no hex" },
  { method: "eth_maxPriorityFeePerGas", result: null },
  { method: "eth_getTransactionReceipt", result: { status: "maybe" } },
])("a first node that answers $method by $result spoils no sale", async ({ method, result }) => {
  const here = await startSettlingDevnet("sqlite");
  onTestFinished(here.stop);
  let isLying = false;
  let lies = 0;
  const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
    if (!isLying || call.method !== method) return ask();
    lies += 1;
    return { result };
  });
  onTestFinished(node.close);
  const facilitator = await here.start({
    network: { rpcUrls: [node.url, here.devnet.rpcUrl] },
    settleTimeoutSeconds: 20,
  });
  isLying = true;
  const { paymentPayload, paymentRequirements } = await here.pay();
  expect(await facilitator.verify(paymentPayload, paymentRequirements)).toMatchObject({
    isValid: true,
  });
  expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
  expect(lies).toBeGreaterThan(0);
});
