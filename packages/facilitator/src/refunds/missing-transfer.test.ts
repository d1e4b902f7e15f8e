import { type Behaviour, behaviours, misbehavingToken, withDatabase } from "@coinslot/devnet";
import { encodeFunctionData } from "viem";
import { expect, it, onTestFinished } from "vitest";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatAccount,
  floatKey,
  idInLedger,
  useRefundingDevnet,
} from "../testing/refunding-devnet.ts";
import { settle } from "../testing/settling-actions.ts";

const begin = useRefundingDevnet();

// As a token that calls its recipient between the two events, whose code puts a Transfer there.
it.each([
  ["no Transfer", "emitsNoTransfer", 1_000n],
  ["a Transfer of nothing", "transfersLess", 1n],
] as const)(
  "a refund whose use of the nonce stands beside %s waits for a person, and is not given again",
  async (_, behaviour, amount) => {
    const here = await begin("sqlite");
    const { devnet, start, pay } = here;
    const { abi } = misbehavingToken;
    const asset = await devnet.deployMisbehavingToken("honest");
    const call = (data: `0x${string}`) => devnet.send({ to: asset, data });
    const behave = (next: Behaviour) => {
      const args = [behaviours[next]] as const;
      return call(encodeFunctionData({ abi, functionName: "setBehaviour", args }));
    };
    for (const to of [devnet.accounts.buyer.address, floatAccount.address]) {
      const args = [to, 1_000n] as const;
      await call(encodeFunctionData({ abi, functionName: "mint", args }));
    }
    let isLying = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
      if (method !== "eth_sendRawTransaction" || !isLying) return ask();
      await behave(behaviour);
      return ask();
    });
    onTestFinished(() => proxy.close());
    const facilitator = await start({
      network: { finalAfter: 2, rpcUrls: [proxy.url] },
      refunds: { privateKey: floatKey },
    });
    const paid = await pay({ asset });
    expect(await settle(facilitator, paid)).toMatchObject({ success: true });
    isLying = true;
    const payment = await idInLedger(facilitator, paid);
    const refund = await facilitator.refunds.create({ payment, amount, idempotencyKey: "1" });
    await becomes(facilitator, here, refund, { state: "manual", cause: "executed_elsewhere" });
    const again = facilitator.refunds.create({ payment, amount: 1_000n, idempotencyKey: "2" });
    await expect(again).rejects.toMatchObject({ reason: expect.stringMatching(/left|exceeds/) });

    // As in a ledger that has lost it. The block may still leave the chain.
    await facilitator.close();
    await withDatabase(here.ledger.url, ({ execute }) =>
      execute(
        `update refunds set state = 'scheduled', cause = null, operation_id = null, float = null,
          valid_before = null, signed_at = null, next_at = 0`,
      ),
    );
    const finalAfter = 100;
    const next = await start({
      network: { finalAfter, rpcUrls: [proxy.url] },
      refunds: { privateKey: floatKey },
    });
    await becomes(next, here, refund, { state: "waiting", cause: "chain" });
    await devnet.mine(finalAfter);
    await becomes(next, here, refund, { state: "manual", cause: "executed_elsewhere" });
  },
);
