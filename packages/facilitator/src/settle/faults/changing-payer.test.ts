import { systemClock } from "@coinslot/chain";
import { describe, expect, it } from "vitest";
import { startNodeProxy } from "../../testing/node-proxy.ts";
import {
  drain,
  holdRequests,
  reserve,
  settle,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";
import type { SettlingDevnet } from "../../testing/settling-devnet.ts";
import { walletSignature } from "../../testing/wallets.ts";

const begin = useSettlingDevnet();

function changer({ devnet }: SettlingDevnet) {
  const [account] = devnet.accounts.others;
  if (account === undefined) throw new Error("No account");
  return account;
}

describe("a payer that delegates, queues a payment, and revokes its delegation", () => {
  it("fails alone while its nonce is verified for another seller repeatedly", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { seller, deployer } = devnet.accounts;
    const signer = changer(here);
    await devnet.mint({ to: signer.address, amount: 10_000n });
    await devnet.delegate(signer, await devnet.deployLyingWallet());
    const facilitator = await start();
    const byCode = await pay({ signer, changeSignature: () => walletSignature });
    const reservation = await reserve(facilitator, byCode);
    await devnet.delegate(signer);
    const { nonce } = byCode.authorization;
    const byKey = await pay({ signer, payTo: deployer.address, authorization: { nonce } });
    const verify = () => facilitator.verify(byKey.paymentPayload, byKey.paymentRequirements);
    expect(await verify()).toMatchObject({ isValid: true });
    const verifying = setInterval(() => void verify().catch(() => undefined), 200);
    try {
      const attack = settle(facilitator, byCode, reservation);
      const honest = await Promise.all(
        [pay(), pay(), pay()].map(async (paid) => settle(facilitator, await paid)),
      );
      expect(honest).toMatchObject(Array(3).fill({ success: true }));
      expect(await attack).toMatchObject({
        success: false,
        errorReason: "invalid_exact_evm_transaction_simulation_failed",
      });
    } finally {
      clearInterval(verifying);
    }
    expect(await balanceOf(seller.address)).toBe(3_000n);
  });
});

describe("a payer that signs with its key, and delegates before its payment is planned", () => {
  it("enters no batch, and fails alone", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const signer = changer(here);
    await devnet.mint({ to: signer.address, amount: 10_000n });
    let passedMs = 0;
    const facilitator = await start({
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
    });
    const byKey = await pay({ signer });
    const reservation = await reserve(facilitator, byKey);
    await devnet.delegate(signer, await devnet.deployLyingWallet());
    // It needs a new trial.
    passedMs += 2_000;
    const attack = settle(facilitator, byKey, reservation);
    const honest = await Promise.all(
      [pay(), pay(), pay()].map(async (paid) => settle(facilitator, await paid)),
    );
    expect(honest).toMatchObject(Array(3).fill({ success: true }));
    expect(await attack).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_transaction_simulation_failed",
    });
    expect(await balanceOf(signer.address)).toBe(10_000n);
  });
});

describe("a payer whose trial no node answers", () => {
  it("waits alone, and settles after the first answer", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const signer = changer(here);
    await devnet.mint({ to: signer.address, amount: 10_000n });
    let isMute = false;
    const proxy = await startNodeProxy(devnet.rpcUrl, async ({ method, params }, ask) => {
      const names = JSON.stringify(params).includes(signer.address.slice(2).toLowerCase());
      return isMute && method === "eth_call" && names
        ? { error: { code: -32603, message: "internal error" } }
        : ask();
    });
    try {
      let passedMs = 0;
      const requests = holdRequests(() => systemClock.now() + passedMs);
      const facilitator = await start({
        network: { rpcUrls: [proxy.url] },
        ...requests.options,
      });
      const waiting = await pay({ signer });
      const reservation = await reserve(facilitator, waiting);
      // It needs a new trial.
      passedMs += 2_000;
      isMute = true;
      const settling = settle(facilitator, waiting, reservation);
      const honest = await Promise.all(
        [pay(), pay(), pay()].map(async (paid) => settle(facilitator, await paid)),
      );
      expect(honest).toMatchObject(Array(3).fill({ success: true }));
      requests.end();
      expect(await settling).toMatchObject({ errorReason: "settlement_pending" });
      isMute = false;
      expect(await settle(facilitator, waiting, reservation)).toMatchObject({ success: true });
    } finally {
      await proxy.close();
    }
  });
});

describe("a payer that has emptied its account", () => {
  it("causes no transaction, even if its nonces are verified for another amount meanwhile", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const { relayer, buyer } = devnet.accounts;
    let passedMs = 0;
    const facilitator = await start({
      clock: { ...systemClock, now: () => systemClock.now() + passedMs },
    });
    const payments = await Promise.all(Array.from({ length: 10 }, () => pay()));
    const reservations = await Promise.all(payments.map((paid) => reserve(facilitator, paid)));
    await drain(here);
    // They need new trials.
    passedMs += 2_000;
    const nonceBefore = await devnet.client.getTransactionCount({ address: relayer.address });
    const settled = await Promise.all(
      payments.map(async (paid, index) => {
        // The same nonce with an amount of zero is still valid.
        const free = await pay({
          signer: buyer,
          amount: 0n,
          authorization: { nonce: paid.authorization.nonce },
        });
        await facilitator.verify(free.paymentPayload, free.paymentRequirements);
        return settle(facilitator, paid, reservations[index]);
      }),
    );
    expect(settled.map(({ success }) => success)).toEqual(Array(10).fill(false));
    const { address } = relayer;
    expect(await devnet.client.getTransactionCount({ address })).toBe(nonceBefore);
  });
});
