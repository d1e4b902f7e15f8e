import { testUsdt0 } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import { startNodeProxy } from "../testing/node-proxy.ts";
import {
  becomes,
  floatAccount,
  settled,
  useRefundingDevnet,
  withFloat,
} from "../testing/refunding-devnet.ts";
import { enginesByDay } from "../testing/settling-devnet.ts";
import type { SignedRefunds } from "./refund-file.ts";
import { signRefunds, transferOf } from "./sign-refunds.ts";

const begin = useRefundingDevnet();
const timeout = 120_000;
const otherKey = generatePrivateKey();
const other = privateKeyToAccount(otherKey);

type Here = Awaited<ReturnType<typeof begin>>;

/** Executes a signed file's only refund, as anyone who has it. */
async function execute({ devnet }: Here, file: SignedRefunds): Promise<void> {
  const [refund] = file.refunds;
  if (refund === undefined) throw new Error("The file is empty");
  const { from, to, value, validAfter, validBefore, nonce } = transferOf(
    file.float,
    refund,
  ).authorization;
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, refund.signature],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}

describe.each(enginesByDay("sqlite"))("a float that is replaced on %s", (engine) => {
  it(
    "signs nothing while a form of the former one may be executed, though the head has moved on meanwhile",
    async () => {
      const here = await begin(engine);
      const { start, devnet, balanceOf } = here;
      await devnet.mint({ to: other.address, amount: 10_000n });
      let aheadMs = 0;
      const options = { ...withFloat, now: () => Date.now() + aheadMs };
      const { address } = floatAccount;
      const first = await start({ ...options, refunds: { address } });
      const payment = await settled(first, here);
      const refund = await first.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(first, here, refund, { state: "unsigned" });
      const unsigned = await first.refunds.exportUnsigned({ validForSeconds: 600 });
      const signed = await signRefunds(unsigned, floatAccount);
      await first.close();

      // A process that is frozen between two reads of the chain.
      let isFrozen = false;
      const nonce = transferOf(address, signed.refunds[0] ?? never()).authorization.nonce;
      const proxy = await startNodeProxy(devnet.rpcUrl, async (call, ask) => {
        const answer = await ask();
        const isAboutNonce = JSON.stringify(call.params).includes(nonce.slice(2));
        if (call.method === "eth_call" && isAboutNonce && !isFrozen) {
          isFrozen = true;
          await execute(here, signed);
          await devnet.client.increaseTime({ seconds: 1_200 });
          aheadMs = 1_200_000;
          await devnet.mine(5);
        }
        return answer;
      });
      onTestFinished(() => proxy.close());
      const second = await start({
        ...options,
        network: { ...withFloat.network, rpcUrls: [proxy.url] },
        refunds: { privateKey: otherKey },
      });
      await becomes(second, here, refund, {
        state: "final",
        cause: "executed_elsewhere",
        float: toLowerHex(address),
      });
      expect(isFrozen).toBe(true);
      expect(await balanceOf(other.address)).toBe(10_000n);
      expect(await balanceOf(address)).toBe(9_000n);
    },
    timeout,
  );

  it(
    "may be exported for another account once the former form is over, and not before",
    async () => {
      const here = await begin(engine);
      const { start, devnet, balanceOf } = here;
      await devnet.mint({ to: other.address, amount: 10_000n });
      let aheadMs = 0;
      const { address } = floatAccount;
      const facilitator = await start({
        ...withFloat,
        now: () => Date.now() + aheadMs,
        refunds: { address },
      });
      const payment = await settled(facilitator, here);
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "unsigned" });
      const ids = [refund.id];
      await facilitator.refunds.exportUnsigned({ validForSeconds: 600 });
      const again = () => facilitator.refunds.exportUnsigned({ ids, float: other.address });
      await expect(again()).rejects.toThrow(/until its time is over/);
      await devnet.client.increaseTime({ seconds: 1_200 });
      aheadMs = 1_200_000;
      await devnet.mine(5);
      await expect.poll(again, { timeout: 30_000 }).toMatchObject({ refunds: [{ id: refund.id }] });
      const signed = await signRefunds(await again(), other);
      expect(await facilitator.refunds.importSigned(signed)).toMatchObject({ refused: [] });
      await becomes(facilitator, here, refund, { state: "final" });
      expect(await balanceOf(other.address)).toBe(9_000n);
      expect(await balanceOf(address)).toBe(10_000n);
    },
    timeout,
  );
});

function never(): never {
  throw new Error("The file is empty");
}
