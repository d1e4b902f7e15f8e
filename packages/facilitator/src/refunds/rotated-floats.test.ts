import { testUsdt0 } from "@coinslot/devnet";
import { toLowerHex } from "@coinslot/protocol";
import { zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { refundNonce } from "../ledger/refunds/refund-nonce.ts";
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
/** Selector of `authorizationState(address,bytes32)`. */
const authorizationState = "0xe94a0102";
const blockSchema = z.object({ result: z.looseObject({}) });

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

  it(
    "leaves refunds to their operator where the token turns out to lack EIP-3009",
    async () => {
      const here = await begin(engine);
      const { start, devnet } = here;
      let isReverting = false;
      const node = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) =>
        isReverting && method === "eth_call" && JSON.stringify(params).includes(authorizationState)
          ? { error: { code: 3, message: "execution reverted", data: "0x" } }
          : ask(),
      );
      onTestFinished(() => node.close());
      const network = { ...withFloat.network, rpcUrls: [node.url] };
      const first = await start({ network, refunds: { address: floatAccount.address } });
      const payment = await settled(first, here);
      const refund = await first.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(first, here, refund, { state: "unsigned" });
      await first.refunds.exportUnsigned({ validForSeconds: 600 });
      await first.close();
      isReverting = true;
      const second = await start({ network, refunds: { privateKey: otherKey } });
      await becomes(second, here, refund, { state: "manual", cause: "no_eip3009" });
    },
    timeout,
  );
});

it("a float is not replaced where one node alone shows the former form as over", async () => {
  const here = await begin("sqlite");
  const { start, devnet } = here;
  let isLying = false;
  // The chain's time is behind: it stood still, and another node makes its blocks newer.
  const liar = await startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    const answer = await ask();
    if (!isLying || method !== "eth_getBlockByNumber") return answer;
    const timestamp = `0x${(Math.floor(Date.now() / 1_000) + 1_200).toString(16)}`;
    return { result: { ...blockSchema.parse(answer).result, timestamp } };
  });
  onTestFinished(() => liar.close());
  let aheadMs = 0;
  const facilitator = await start({
    network: { ...withFloat.network, rpcUrls: [liar.url, devnet.rpcUrl] },
    now: () => Date.now() + aheadMs,
    refunds: { address: floatAccount.address },
  });
  const payment = await settled(facilitator, here);
  const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
  await becomes(facilitator, here, refund, { state: "unsigned" });
  await facilitator.refunds.exportUnsigned({ validForSeconds: 600 });
  aheadMs = 1_200_000;
  isLying = true;
  await devnet.mine(5);
  const again = facilitator.refunds.exportUnsigned({ ids: [refund.id], float: other.address });
  await expect(again).rejects.toThrow(/until its time is over/);
});

/**
 * A chain of two nodes. The first one hides the use of a nonce, once it is named. The other one
 * leaves calls about it without an answer while it is mute.
 */
async function hideUse({ devnet }: Here) {
  let hidden: string | undefined;
  const honest = { isMute: false, muted: 0 };
  const liar = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const isHidden = hidden !== undefined && JSON.stringify(params).includes(hidden);
    if (isHidden && method === "eth_call") return { result: zeroHash };
    return isHidden && method === "eth_getLogs" ? { result: [] } : ask();
  });
  const other = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
    const isAbout = hidden !== undefined && JSON.stringify(params).includes(hidden);
    if (!honest.isMute || !isAbout || method !== "eth_call") return ask();
    honest.muted += 1;
    return undefined;
  });
  onTestFinished(async () => void (await Promise.all([liar.close(), other.close()])));
  return {
    honest,
    network: { ...withFloat.network, rpcUrls: [liar.url, other.url] },
    hide: (nonce: string | undefined) => {
      hidden = nonce?.slice(2);
    },
  };
}

describe("a float that is replaced behind a node that hides its refund", () => {
  const { address } = floatAccount;

  it("is not replaced in an export while another endpoint shows the refund as executed", async () => {
    const here = await begin("sqlite");
    const { start, devnet } = here;
    const { network, hide } = await hideUse(here);
    let aheadMs = 0;
    const now = () => Date.now() + aheadMs;
    const facilitator = await start({ network, now, refunds: { address } });
    const payment = await settled(facilitator, here);
    const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
    await becomes(facilitator, here, refund, { state: "unsigned" });
    const unsigned = await facilitator.refunds.exportUnsigned({ validForSeconds: 600 });
    const signed = await signRefunds(unsigned, floatAccount);
    hide(transferOf(address, signed.refunds[0] ?? never()).authorization.nonce);
    await execute(here, signed);
    await devnet.client.increaseTime({ seconds: 1_200 });
    aheadMs = 1_200_000;
    await devnet.mine(5);
    const again = facilitator.refunds.exportUnsigned({ ids: [refund.id], float: other.address });
    await expect(again).rejects.toThrow(/until its time is over/);
    hide(undefined);
    await becomes(facilitator, here, refund, { state: "final", cause: "executed_elsewhere" });
  });

  it.each([
    ["shows that", false],
    ["answers no call", true],
  ])(
    "leaves a refund waiting that the former one has paid by a lost ledger, while another %s",
    async (_, isMute) => {
      const here = await begin("sqlite");
      const { start, devnet, balanceOf } = here;
      await devnet.mint({ to: other.address, amount: 10_000n });
      const { network, hide, honest } = await hideUse(here);
      const refunds = { privateKey: otherKey, formerFloats: [address] };
      const facilitator = await start({ network, refunds });
      const payment = await settled(facilitator, here);
      const authorization = (await facilitator.payments.get(payment))?.authorization ?? never();
      hide(refundNonce(authorization, 1));
      honest.isMute = isMute;
      await execute(
        here,
        await signRefunds(
          {
            format: "coinslot-refunds/1",
            float: address,
            refunds: [
              {
                id: "lost",
                network: devnet.network,
                asset: authorization.asset,
                domain: { name: "USDT0", version: "1" },
                payment: authorization,
                n: 1,
                amount: "1000",
                validBefore: "4000000000",
              },
            ],
          },
          floatAccount,
        ),
      );
      const refund = await facilitator.refunds.create({ payment, idempotencyKey: "1" });
      await becomes(facilitator, here, refund, { state: "waiting", cause: "chain" });
      expect(honest.muted > 0).toBe(isMute);
      hide(undefined);
      await becomes(facilitator, here, refund, { state: "final", cause: "executed_elsewhere" });
      expect(await balanceOf(other.address)).toBe(10_000n);
    },
  );
});

function never(): never {
  throw new Error("The file is empty");
}
