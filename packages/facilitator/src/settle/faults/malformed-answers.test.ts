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

it("a first node's garbage hides no refusal of the next one's that trials can go around", async () => {
  const here = await startSettlingDevnet("sqlite");
  onTestFinished(here.stop);
  let isLying = false;
  let refusals = 0;
  const liar = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) =>
    isLying && call.method === "eth_call" ? { result: "no hex" } : ask(),
  );
  onTestFinished(liar.close);
  const honest = await startNodeProxy(here.devnet.rpcUrl, async ({ method, params }, ask) => {
    const [call] = params;
    const hasTo = typeof call === "object" && call !== null && "to" in call;
    if (method !== "eth_call" || hasTo) return ask();
    refusals += 1;
    return { error: { code: -32_602, message: "invalid argument 0: a call needs a contract" } };
  });
  onTestFinished(honest.close);
  const rpcUrls = [liar.url, honest.url];
  const facilitator = await here.start({ network: { rpcUrls }, settleTimeoutSeconds: 20 });
  isLying = true;
  expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
  expect(refusals).toBeGreaterThan(0);
});

it.each([
  // Hex, and more than any count of nonces.
  { method: "eth_getTransactionCount", result: "0x123456789012345" },
  { method: "eth_getCode", result: "0x1" },
  { method: "eth_call", result: "0x1" },
])("a first node that answers $method by $result spoils no restart", async ({ method, result }) => {
  const here = await startSettlingDevnet("sqlite");
  onTestFinished(here.stop);
  const before = await here.start();
  expect(await settle(before, await here.pay())).toMatchObject({ success: true });
  await before.close();
  let lies = 0;
  const node = await startNodeProxy(here.devnet.rpcUrl, async (call, ask) => {
    if (call.method !== method) return ask();
    lies += 1;
    return { result };
  });
  onTestFinished(node.close);
  const facilitator = await here.start({
    network: { rpcUrls: [node.url, here.devnet.rpcUrl] },
    settleTimeoutSeconds: 20,
  });
  expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
  expect(lies).toBeGreaterThan(0);
});
