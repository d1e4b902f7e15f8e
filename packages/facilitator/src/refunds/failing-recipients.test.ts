import { type Behaviour, behaviours, misbehavingToken } from "@coinslot/devnet";
import { encodeFunctionData } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatAccount,
  floatKey,
  idInLedger,
  patience,
  useRefundingDevnet,
} from "../testing/refunding-devnet.ts";
import { settle } from "../testing/settling-actions.ts";

const begin = useRefundingDevnet();

it("a refund that passes its trials and fails in each block costs three transactions for each signature", async () => {
  const { devnet, start, pay, ...here } = await begin("sqlite");
  const { abi } = misbehavingToken;
  const asset = await devnet.deployMisbehavingToken("honest");
  const behave = (behaviour: Behaviour) => {
    const args = [behaviours[behaviour]] as const;
    return devnet.send({
      to: asset,
      data: encodeFunctionData({ abi, functionName: "setBehaviour", args }),
    });
  };
  for (const to of [devnet.accounts.buyer.address, floatAccount.address]) {
    const args = [to, 1_000n] as const;
    await devnet.send({ to: asset, data: encodeFunctionData({ abi, functionName: "mint", args }) });
  }
  // As a token that calls its recipients, whose code knows a trial from a block.
  let [isLying, sent] = [false, 0];
  const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method !== "eth_sendRawTransaction" || !isLying) return ask();
    sent += 1;
    await behave("reverts");
    const answer = await ask();
    await devnet.mine(1);
    await behave("honest");
    return answer;
  });
  onTestFinished(() => proxy.close());
  let aheadMs = 0;
  const facilitator = await start({
    network: { finalAfter: 2, rpcUrls: [proxy.url] },
    refunds: { privateKey: floatKey, validForSeconds: 600 },
    now: () => Date.now() + aheadMs,
  });
  const paid = await pay({ asset });
  expect(await settle(facilitator, paid)).toMatchObject({ success: true });
  await devnet.mine(3);
  isLying = true;
  const payment = await idInLedger(facilitator, paid);
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  const scene = { devnet, start, pay, ...here };
  await becomes(facilitator, scene, refund, { state: "sent", cause: "fails_in_blocks" });
  expect(sent).toBe(3);
  await devnet.client.increaseTime({ seconds: 1_200 });
  aheadMs = 1_200_000;
  await vi.waitFor(async () => {
    await devnet.mine(1);
    expect(sent).toBe(6);
  }, patience);
  isLying = false;
  await devnet.client.increaseTime({ seconds: 1_200 });
  aheadMs = 2_400_000;
  await becomes(facilitator, scene, refund, { state: "final" });
  expect(sent).toBe(6);
}, 120_000);
