import { systemClock } from "@coinslot/chain";
import { type Behaviour, behaviours, misbehavingToken, withDatabase } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { encodeFunctionData, isHex, parseTransaction } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { patience, price } from "../../testing/claiming-devnet.ts";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import { startRefundingChannels } from "../../testing/refunding-channels.ts";

/** Of `refundWithSignature`. */
const refundSelector = "b77433e9";

it("a refund that passes its trials and fails in each block is sent once a day after three transactions", async () => {
  const here = await startRefundingChannels("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const { buyer } = devnet.accounts;
  const token = toLowerHex(await devnet.deployMisbehavingToken("honest"));
  await devnet.mint({ to: buyer.address, amount: 100_000n, token });
  const config = channels.configOf({ token });
  await channels.deposit(config, 100_000n);
  const { abi } = misbehavingToken;
  const behave = (behaviour: Behaviour) => {
    const args = [behaviours[behaviour]] as const;
    const data = encodeFunctionData({ abi, functionName: "setBehaviour", args });
    return devnet.send({ to: token, data });
  };
  let aheadMs = 0;
  /** Of each transaction that holds a refund, by its nonce. */
  const sentAt = new Map<number | undefined, number>();
  // As a token that calls its recipient, whose code knows a trial from a block.
  const node = await startNodeProxy(devnet.rpcUrl, async ({ method, params: [raw] }, ask) => {
    const isSent = method === "eth_sendRawTransaction" && isHex(raw);
    if (!isSent || !raw.includes(refundSelector)) return ask();
    const { nonce } = parseTransaction(raw);
    await behave("reverts");
    const answer = await ask();
    await behave("honest");
    if (!sentAt.has(nonce)) sentAt.set(nonce, aheadMs);
    return answer;
  });
  onTestFinished(node.close);
  const clock = { ...systemClock, now: () => performance.now() + aheadMs };
  const facilitator = await here.start(
    { mostAtRisk: 1_000_000n },
    { clock, network: { rpcUrls: [node.url] }, times: { loseMs: 10 ** 12, replaceMs: 10 ** 12 } },
  );
  await here.buyOnce(facilitator, price, config);
  const asked = here.refundOnce(facilitator, config, price).catch(() => undefined);
  await vi.waitFor(() => expect(sentAt.size).toBe(1), patience);
  await vi.waitFor(async () => {
    await devnet.mine(1);
    // Time would make an open transaction lost.
    const open = await withDatabase(here.ledger.url, ({ read }) =>
      read("select id from transactions where state = 'open'"),
    );
    expect(open).toEqual([]);
    aheadMs += sentAt.size < 3 ? 6_000 : 3_600_000;
    expect(sentAt.size).toBe(4);
  }, patience);
  const [, , third = 0, fourth = 0] = [...sentAt.values()];
  expect(fourth - third).toBeGreaterThanOrEqual(86_400_000);
  await facilitator.close();
  await asked;
});
