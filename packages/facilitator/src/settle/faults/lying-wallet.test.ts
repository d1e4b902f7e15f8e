import { testUsdt0 } from "@coinslot/devnet";
import { FacilitatorError } from "@coinslot/protocol";
import { isHex, numberToHex, parseTransaction } from "viem";
import { describe, expect, it, vi } from "vitest";
import { type NodeProxy, startNodeProxy } from "../../testing/node-proxy.ts";
import {
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";
import { createWallet, payBy, walletSignature } from "../../testing/wallets.ts";

const begin = useSettlingDevnet();

function sentBy({ devnet }: SettlingDevnet): Promise<number> {
  return devnet.client.getTransactionCount({ address: devnet.accounts.relayer.address });
}

/** A node with a hook before it accepts a transaction. */
function startSlowNode(
  { devnet }: SettlingDevnet,
  beforeSend: () => Promise<unknown>,
): Promise<NodeProxy> {
  return startNodeProxy(devnet.rpcUrl, async ({ method }, ask) => {
    if (method === "eth_sendRawTransaction") await beforeSend();
    return ask();
  });
}

describe("a wallet that passes its trial and burns gas in the block", () => {
  it("is refused by a trial with the relayer as its origin and a gas price", async () => {
    const here = await begin();
    const facilitator = await here.start();
    const paid = await payBy(here, await createWallet(here, "hasOrigin"));
    expect(await facilitator.verify(paid.paymentPayload, paid.paymentRequirements)).toMatchObject({
      isValid: false,
      invalidReason: "invalid_exact_evm_transaction_simulation_failed",
    });
    expect(await settle(facilitator, paid)).toMatchObject({ success: false });
    expect(await sentBy(here)).toBe(0);
  });

  it("is refused by the trial of its exact transaction, where it detects a simulation by warm storage", async () => {
    const here = await begin();
    const { devnet } = here;
    const facilitator = await here.start();
    const wallet = await createWallet(here);
    await devnet.setLie(wallet, "hasColdBalance", BigInt(devnet.accounts.seller.address));
    const paid = await payBy(here, wallet);
    const reservation = await reserve(facilitator, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    expect(await sentBy(here)).toBe(0);
  });

  it("sees the price, the gas and the sender of its transaction in the last trial", async () => {
    const here = await begin();
    const { devnet, start } = here;
    const trials: unknown[] = [];
    const sent: string[] = [];
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
      if (method === "eth_call" && params[1] === "pending") trials.push(params[0]);
      if (method === "eth_sendRawTransaction") sent.push(String(params[0]));
      return ask();
    });
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
      const paid = await payBy(here, await createWallet(here));
      expect(await settle(facilitator, paid)).toMatchObject({ success: true });
      const [raw] = sent;
      if (!isHex(raw)) throw new Error("Nothing was sent");
      const { to, data, gas, maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(raw);
      const tried = {
        from: devnet.accounts.relayer.address,
        to,
        data,
        gas: numberToHex(gas ?? 0n),
        maxFeePerGas: numberToHex(maxFeePerGas ?? 0n),
        maxPriorityFeePerGas: numberToHex(maxPriorityFeePerGas ?? 0n),
      };
      expect(trials).toEqual([tried]);
    } finally {
      await proxy.close();
    }
  });

  it("has its queued payments dropped when it burns, even after a passed trial", async () => {
    const here = await begin();
    const { devnet, start } = here;
    const wallet = await createWallet(here);
    const proxy = await startSlowNode(here, () => devnet.mine(2));
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
      expect(await settle(facilitator, await payBy(here, wallet))).toMatchObject({ success: true });
      const [first, second] = [await payBy(here, wallet), await payBy(here, wallet)];
      const reservation = await reserve(facilitator, second);
      await devnet.setLie(wallet, "afterBlock", (await devnet.client.getBlockNumber()) + 2n);
      expect(await settle(facilitator, first)).toMatchObject({
        errorReason: "invalid_exact_evm_transaction_failed",
      });
      await devnet.setLie(wallet, "none");
      expect(await settle(facilitator, second, reservation)).toMatchObject({
        success: false,
        errorReason: "invalid_exact_evm_transaction_simulation_failed",
      });
      expect(await sentBy(here)).toBe(2);
    } finally {
      await proxy.close();
    }
  });

  it("keeps its record where its balance was spent before the block, since the token also refuses that", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const [account] = devnet.accounts.others;
    if (account === undefined) throw new Error("No account");
    await devnet.mint({ to: account.address, amount: 1_000n });
    await devnet.delegate(account, await devnet.deployLyingWallet());
    const payWithCode = () => pay({ signer: account, changeSignature: () => walletSignature });
    const proxy = await startSlowNode(here, async () => {
      if ((await sentBy(here)) > 0) return;
      const hash = await devnet.client.writeContract({
        account,
        address: devnet.token,
        abi: testUsdt0.abi,
        functionName: "transfer",
        args: [devnet.accounts.deployer.address, 1_000n],
      });
      await devnet.client.waitForTransactionReceipt({ hash });
      await devnet.mine(2);
    });
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
      const pending = (await devnet.client.getBlockNumber()) + 2n;
      await devnet.setLie(account.address, "afterBlock", pending);
      expect(await settle(facilitator, await payWithCode())).toMatchObject({
        errorReason: "invalid_exact_evm_transaction_failed",
      });
      await devnet.setLie(account.address, "none");
      await devnet.mint({ to: account.address, amount: 1_000n });
      expect(await settle(facilitator, await payWithCode())).toMatchObject({ success: true });
    } finally {
      await proxy.close();
    }
  });

  it("is refused everywhere once it has burnt gas, also after a restart", async () => {
    const here = await begin();
    const { devnet, start } = here;
    const wallet = await createWallet(here);
    const proxy = await startSlowNode(here, () => devnet.mine(2));
    try {
      const network = { rpcUrls: [proxy.url] };
      const before = await start({ network });
      await devnet.setLie(wallet, "afterBlock", (await devnet.client.getBlockNumber()) + 2n);
      const first = await payBy(here, wallet);
      const reservation = await reserve(before, first);
      expect(await settle(before, first, reservation)).toMatchObject({
        success: false,
        errorReason: "invalid_exact_evm_transaction_failed",
      });
      expect(await sentBy(here)).toBe(1);
      await before.release(reservation, "refused");
      await before.close();
      const after = await start({ network });
      await devnet.setLie(wallet, "none");
      const second = await payBy(here, wallet);
      const refused = { invalidReason: "payer_not_accepted" };
      expect(await after.verify(second.paymentPayload, second.paymentRequirements)).toMatchObject(
        refused,
      );
      expect(await settle(after, second)).toMatchObject({ errorReason: "payer_not_accepted" });
      expect(await settle(after, first)).toMatchObject({ errorReason: "payer_not_accepted" });
      expect(await sentBy(here)).toBe(1);
    } finally {
      await proxy.close();
    }
  });

  it("burns at most the budget, over any number of such wallets", async () => {
    const here = await begin();
    const { devnet, start } = here;
    const wallets = await Promise.all(Array.from({ length: 4 }, () => createWallet(here)));
    const proxy = await startSlowNode(here, () => devnet.mine(2));
    try {
      const facilitator = await start({
        network: { rpcUrls: [proxy.url] },
        payersWithCode: { gasPerMinute: 700_000n },
      });
      const outcomes: string[] = [];
      for (const wallet of wallets) {
        const pending = (await devnet.client.getBlockNumber()) + 2n;
        await devnet.setLie(wallet, "afterBlock", pending);
        const outcome = await settle(facilitator, await payBy(here, wallet)).catch(String);
        outcomes.push(typeof outcome === "string" ? outcome : `${outcome.errorReason}`);
      }
      const burnt = "invalid_exact_evm_transaction_failed";
      const waits = expect.stringMatching(
        /FacilitatorError: The gas for payments of payers with code/,
      );
      expect(outcomes).toEqual([burnt, burnt, waits, waits]);
      expect(await sentBy(here)).toBe(2);
    } finally {
      await proxy.close();
    }
  });

  it("keeps its record where an observer has executed its payment first", async () => {
    const here = await begin();
    const { start } = here;
    const wallet = await createWallet(here);
    const paid = await payBy(here, wallet);
    let isFirst = true;
    const proxy = await startSlowNode(here, async () => {
      if (isFirst) await submitAsStranger(here, paid);
      isFirst = false;
    });
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
      expect(await settle(facilitator, paid)).toMatchObject({ success: true });
      const next = await payBy(here, wallet);
      expect(await settle(facilitator, next)).toMatchObject({ success: true });
    } finally {
      await proxy.close();
    }
  });

  it("is not refused for a node's wrong trial result", async () => {
    const here = await begin();
    const { devnet, start } = here;
    let isWrong = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
      if (!isWrong || method !== "eth_call" || params[1] !== "pending") return ask();
      isWrong = false;
      return { error: { code: 3, message: "execution reverted" } };
    });
    try {
      const facilitator = await start({ network: { rpcUrls: [proxy.url] } });
      isWrong = true;
      const paid = await payBy(here, await createWallet(here));
      expect(await settle(facilitator, paid)).toMatchObject({ success: true });
      expect(isWrong).toBe(false);
    } finally {
      await proxy.close();
    }
  });
});

describe("payers with code", () => {
  it("are all refused where the seller configures so", async () => {
    const here = await begin();
    const facilitator = await here.start({ payersWithCode: false });
    const paid = await payBy(here, await createWallet(here));
    expect(await facilitator.verify(paid.paymentPayload, paid.paymentRequirements)).toMatchObject({
      isValid: false,
      invalidReason: "payer_not_accepted",
    });
    expect(await settle(facilitator, paid)).toMatchObject({ errorReason: "payer_not_accepted" });
    expect(await settle(facilitator, await here.pay())).toMatchObject({ success: true });
  });

  it("wait without a handler run while the gas budget is exhausted, and other payers do not", async () => {
    const here = await begin();
    const facilitator = await here.start({ payersWithCode: { gasPerMinute: 700_000n } });
    const [first, second, third] = await Promise.all(
      Array.from({ length: 3 }, async () => payBy(here, await createWallet(here))),
    );
    if (!first || !second || !third) throw new Error("No payments");
    const reservation = await reserve(facilitator, first);
    await reserve(facilitator, second);
    const refusal = await reserve(facilitator, third).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(FacilitatorError);
    expect(refusal).toMatchObject({ isRetryable: true, retryAfterSeconds: 2 });
    await expect(settle(facilitator, third)).rejects.toMatchObject({ retryAfterSeconds: 2 });
    const plain = await here.pay();
    expect(await settle(facilitator, plain)).toMatchObject({ success: true });
    // A confirmed payment gives its gas back.
    expect(await settle(facilitator, first, reservation)).toMatchObject({ success: true });
    expect(await settle(facilitator, third)).toMatchObject({ success: true });
  });

  it("have few places in flight, so that a batch never waits for them", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const wallets = await Promise.all(Array.from({ length: 10 }, () => createWallet(here)));
    const facilitator = await start({ payersWithCode: { gasPerMinute: 100_000_000n } });
    await devnet.setAutomine(false);
    const pooled = async () => (await devnet.client.getTxpoolStatus()).pending;
    const alone = wallets.map(async (wallet) => settle(facilitator, await payBy(here, wallet)));
    await vi.waitFor(async () => expect(await pooled()).toBe(4), 20_000);
    const shared = [pay(), pay(), pay()].map(async (paid) => settle(facilitator, await paid));
    await vi.waitFor(async () => expect(await pooled()).toBeGreaterThan(4), 20_000);
    await devnet.mine();
    const [first] = shared;
    expect(await first).toMatchObject({ success: true });
    await devnet.setAutomine(true);
    await devnet.mine();
    const settled = await Promise.all([...alone, ...shared]);
    expect(settled).toMatchObject(settled.map(() => ({ success: true })));
  });
});
