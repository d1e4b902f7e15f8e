import { behaviours, testUsdt0 } from "@coinslot/devnet";
import {
  type AuthorizationId,
  FacilitatorError,
  type Reservation,
  toLowerHex,
} from "@coinslot/protocol";
import { type LocalAccount, parseEther } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { CoinslotFacilitator } from "../create-facilitator.ts";
import { type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";
import type { SettlementEvent } from "./settlement-event.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

let settling: SettlingDevnet | undefined;

async function begin(): Promise<SettlingDevnet> {
  settling = await startSettlingDevnet("sqlite");
  return settling;
}

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

/** Verifies and reserves, as a gate does before it runs a handler. */
async function reserve(facilitator: CoinslotFacilitator, paid: Paid): Promise<Reservation> {
  const { paymentPayload, paymentRequirements, authorization } = paid;
  const verified = await facilitator.verify(paymentPayload, paymentRequirements);
  expect(verified).toMatchObject({ isValid: true });
  const { balance } = "balance" in verified ? verified : {};
  const reserved = await facilitator.reserve({
    id: idOf(paid),
    fingerprint: "GET /a",
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo: toLowerHex(authorization.to),
    balance,
  });
  if (reserved.state !== "reserved") throw new Error(reserved.state);
  return reserved.reservation;
}

function idOf({ paymentRequirements, authorization }: Paid): AuthorizationId {
  return {
    network: paymentRequirements.network,
    asset: `0x${paymentRequirements.asset.slice(2).toLowerCase()}`,
    payer: `0x${authorization.from.slice(2).toLowerCase()}`,
    nonce: authorization.nonce,
  };
}

function settle(facilitator: CoinslotFacilitator, paid: Paid, reservation?: Reservation) {
  return facilitator.settle(paid.paymentPayload, paid.paymentRequirements, { reservation });
}

/** Submits the authorization as somebody who has seen it. */
async function submitAsStranger({ devnet }: SettlingDevnet, { authorization, signature }: Paid) {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
  return hash;
}

async function cancel({ devnet }: SettlingDevnet, signer: LocalAccount, paid: Paid) {
  const { nonce } = paid.authorization;
  const signature = await signer.signTypedData({
    domain: {
      name: "USDT0",
      version: "1",
      chainId: devnet.chainId,
      verifyingContract: devnet.token,
    },
    types: {
      CancelAuthorization: [
        { name: "authorizer", type: "address" },
        { name: "nonce", type: "bytes32" },
      ],
    },
    primaryType: "CancelAuthorization",
    message: { authorizer: signer.address, nonce },
  });
  const hash = await devnet.client.writeContract({
    account: devnet.accounts.deployer,
    address: devnet.token,
    abi: testUsdt0.abi,
    functionName: "cancelAuthorization",
    args: [signer.address, nonce, signature],
  });
  await devnet.client.waitForTransactionReceipt({ hash });
}

function listen(facilitator: CoinslotFacilitator): SettlementEvent["type"][] {
  const events: SettlementEvent["type"][] = [];
  facilitator.onEvent(({ type }) => events.push(type));
  return events;
}

describe("settling", () => {
  it("settles forty-nine of fifty when one of them was poisoned", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const payments = await Promise.all(Array.from({ length: 50 }, () => pay()));
    const reservations = await Promise.all(payments.map((paid) => reserve(facilitator, paid)));
    const [poisoned] = payments;
    if (poisoned === undefined) throw new Error("No payment");
    await cancel(here, devnet.accounts.buyer, poisoned);

    const settled = await Promise.all(
      payments.map((paid, index) => settle(facilitator, paid, reservations[index])),
    );

    expect(settled.filter(({ success }) => success)).toHaveLength(49);
    expect(settled[0]).toMatchObject({ success: false });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(49_000n);
  });

  it("withholds success when the payer emptied the account after the reservation", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const [stranger] = devnet.accounts.others;
    if (stranger === undefined) throw new Error("No account");
    await devnet.client.writeContract({
      account: devnet.accounts.buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [stranger.address, await balanceOf(devnet.accounts.buyer.address)],
    });
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(0n);
  });

  it("honours an authorization that a stranger submitted first", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const transaction = await submitAsStranger(here, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({
      success: true,
      transaction,
    });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("does not honour a cancelled authorization", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    await cancel(here, devnet.accounts.buyer, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
  });

  it("confirms a failed payment that a stranger executes later", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const { buyer, deployer } = devnet.accounts;
    const holdings = await balanceOf(buyer.address);
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [deployer.address, holdings],
    });
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    await facilitator.release(reservation, "refused");
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    // Its payer brings it again, and the handler fails: it is watched as before.
    await facilitator.release(await reserve(facilitator, paid), "handler_failed");
    const events = listen(facilitator);
    await submitAsStranger(here, paid);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
    const request = { id: idOf(paid), fingerprint: "GET /a" };
    expect(await facilitator.lookUp(request)).toEqual({ state: "resumable" });
  });

  it("watches a failed payment behind five hundred that stay valid for long", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const { buyer, deployer } = devnet.accounts;
    const facilitator = await start();
    const authorization = { validBefore: BigInt(Math.floor(Date.now() / 1000) + 80_000) };
    const endless = await Promise.all(
      Array.from({ length: 500 }, () => pay({ amount: 1n, authorization })),
    );
    const held = await Promise.all(endless.map((paid) => reserve(facilitator, paid)));
    const last = await pay();
    const lastHeld = await reserve(facilitator, last);
    await devnet.client.writeContract({
      account: buyer,
      address: devnet.token,
      abi: testUsdt0.abi,
      functionName: "transfer",
      args: [deployer.address, await balanceOf(buyer.address)],
    });
    await Promise.all(endless.map((paid, index) => settle(facilitator, paid, held[index])));
    expect(await settle(facilitator, last, lastHeld)).toMatchObject({ success: false });
    const events = listen(facilitator);
    await devnet.mint({ to: buyer.address, amount: 1_000n });
    await submitAsStranger(here, last);
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);
  });

  it("gives two payments of a balance for one only one success", async () => {
    const { devnet, start, pay } = await begin();
    const [poor] = devnet.accounts.others;
    if (poor === undefined) throw new Error("No account");
    await devnet.mint({ to: poor.address, amount: 1_500n });
    const facilitator = await start();
    const payments = await Promise.all([pay({ signer: poor }), pay({ signer: poor })]);
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.map(({ success }) => success).sort()).toEqual([false, true]);
    expect(settled.find(({ success }) => !success)).toMatchObject({
      errorReason: "invalid_exact_evm_insufficient_balance",
    });
  });

  it("does not count a payment twice that is mined and not yet deep enough to be settled", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const [poor] = devnet.accounts.others;
    if (poor === undefined) throw new Error("No account");
    await devnet.mint({ to: poor.address, amount: 3_000n });
    const facilitator = await start({ network: { serveAfter: 3, finalAfter: 3 } });
    const first = settle(facilitator, await pay({ signer: poor }));
    await vi.waitFor(async () => expect(await balanceOf(poor.address)).toBe(2_000n), 10_000);

    const exact = await pay({ signer: poor, amount: 2_000n });
    const held = await reserve(facilitator, exact);
    // What is promised and not mined counts as ever.
    const { paymentPayload, paymentRequirements } = await pay({ signer: poor });
    expect(await facilitator.settle(paymentPayload, paymentRequirements)).toMatchObject({
      errorReason: "invalid_exact_evm_insufficient_balance",
    });
    const second = settle(facilitator, exact, held);
    await vi.waitFor(async () => expect(await balanceOf(poor.address)).toBe(0n), 10_000);
    await devnet.mine(3);
    expect(await Promise.all([first, second])).toMatchObject([
      { success: true },
      { success: true },
    ]);
  });

  it("answers a repeated settlement as the rule says", async () => {
    const { start, pay } = await begin();
    const facilitator = await start();
    const paid = await pay();
    const keyed = { idempotencyKey: "order 7" };
    const first = await facilitator.settle(paid.paymentPayload, paid.paymentRequirements, keyed);
    expect(first).toMatchObject({ success: true });
    expect(await facilitator.settle(paid.paymentPayload, paid.paymentRequirements, keyed)).toEqual(
      first,
    );
    expect(await settle(facilitator, paid)).toMatchObject({
      success: false,
      errorReason: "duplicate_settlement",
      transaction: first.transaction,
    });
  });

  it("answers pending with the hash, and the same payment resumes and pays nothing more", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ settleTimeoutSeconds: 0.3 });
    const events = listen(facilitator);
    await devnet.setAutomine(false);
    const paid = await pay();
    const pending = await settle(facilitator, paid);
    expect(pending).toMatchObject({ success: false, errorReason: "settlement_pending" });
    expect(pending.transaction).toMatch(/^0x[0-9a-f]{64}$/);
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(() => expect(events).toEqual(["settle_started", "settle_completed"]), 10_000);
    expect(await settle(facilitator, paid)).toMatchObject({
      success: true,
      transaction: pending.transaction,
    });
    expect(await settle(facilitator, paid)).toMatchObject({ errorReason: "duplicate_settlement" });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
  });

  it("tells nobody else's payment as settled: not to another seller, not for another amount", async () => {
    const { devnet, start, pay } = await begin();
    const { buyer, deployer, seller } = devnet.accounts;
    const facilitator = await start({ settleTimeoutSeconds: 0.3 });
    const events = listen(facilitator);
    await devnet.setAutomine(false);
    const own = await pay({ payTo: deployer.address });
    expect(await settle(facilitator, own)).toMatchObject({ errorReason: "settlement_pending" });
    await devnet.setAutomine(true);
    await devnet.mine();
    await vi.waitFor(() => expect(events).toContain("settle_completed"), 10_000);

    const { nonce } = own.authorization;
    const changes = [
      { authorization: { nonce, from: buyer.address }, payTo: seller.address, signer: deployer },
      { authorization: { nonce, from: buyer.address }, payTo: deployer.address, amount: 9_000n },
      { authorization: { nonce, to: deployer.address }, payTo: seller.address },
      { authorization: { nonce, value: 1_000n }, payTo: deployer.address, amount: 9_000n },
    ];
    for (const change of changes) {
      expect(await settle(facilitator, await pay(change))).toMatchObject({ success: false });
    }
    expect(await settle(facilitator, own)).toMatchObject({ success: true });
  });

  it("replaces a transaction that is stuck, with the same nonce and a higher fee", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ times: { resendMs: 100, replaceMs: 200 } });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    const replaced = async () =>
      (await facilitator.metrics.getSingleMetricAsString("coinslot_transactions_total")).match(
        /event="replaced"} (\d+)/,
      );
    await vi.waitFor(
      async () => expect(Number((await replaced())?.[1])).toBeGreaterThan(1),
      10_000,
    );
    await devnet.mine();
    expect(await settled).toMatchObject({ success: true });
    const { relayer, seller } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(1);
    expect(await balanceOf(seller.address)).toBe(1_000n);
  });

  it("sends a transaction again that the pools have forgotten", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start({ times: { resendMs: 100, replaceMs: 60_000 } });
    await devnet.setAutomine(false);
    const settled = settle(facilitator, await pay());
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      5_000,
    );
    const { transactions } = await devnet.client.getBlock({ blockTag: "pending" });
    await Promise.all(transactions.map((hash) => devnet.client.dropTransaction({ hash })));
    await vi.waitFor(
      async () => expect((await devnet.client.getTxpoolStatus()).pending).toBe(1),
      5_000,
    );
    await devnet.setAutomine(true);
    await devnet.mine();
    expect(await settled).toMatchObject({ success: true });
  });

  it("follows a payment whose block left the chain until it stands in another", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start({ times: { resendMs: 200 } });
    const events = listen(facilitator);
    await devnet.mine(2);
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
    await facilitator.deliver(reservation);
    await devnet.reorg({ depth: 1 });
    await devnet.mine();
    await vi.waitFor(
      () =>
        expect(events).toEqual([
          "settle_started",
          "settle_completed",
          "settle_reorganised",
          "settle_completed",
        ]),
      15_000,
    );
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(1_000n);
    expect(
      await facilitator.metrics.getSingleMetricAsString("coinslot_reorganised_payments_total"),
    ).toContain('delivered="true"} 1');
  });

  it("marks payments as final at depth", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start({ network: { finalAfter: 3 } });
    await settle(facilitator, await pay());
    await devnet.mine(4);
    await vi.waitFor(async () => {
      const { payments } = await facilitator.payments.list();
      expect(payments[0]?.finalAt).toBeDefined();
    }, 10_000);
  });

  it("waits for as many blocks as the amount asks for", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const serveAfter = (amount: bigint) => (amount > 500n ? 2 : 0);
    const facilitator = await start({ network: { serveAfter } });
    const small = settle(facilitator, await pay({ amount: 500n }));
    expect(await small).toMatchObject({ success: true });
    let isSettled = false;
    const large = settle(facilitator, await pay({ amount: 501n })).finally(() => {
      isSettled = true;
    });
    // In a block: those that follow stand on top of it.
    const { address } = devnet.accounts.seller;
    await vi.waitFor(async () => expect(await balanceOf(address)).toBe(1_001n), 10_000);
    await devnet.mine();
    expect(isSettled).toBe(false);
    await devnet.mine(2);
    expect(await large).toMatchObject({ success: true });
  });

  it("expires what waits too long, and never sends it", async () => {
    const { devnet, start, pay } = await begin();
    let offsetMs = 0;
    const facilitator = await start({
      now: () => Date.now() + offsetMs,
      network: { fees: { maxFeePerGas: 1n } },
    });
    const settled = settle(facilitator, await pay());
    await vi.waitFor(async () => {
      expect((await facilitator.payments.list({ state: "queued" })).payments).toHaveLength(1);
    });
    offsetMs = 300_000;
    expect(await settled).toMatchObject({
      success: false,
      errorReason: "invalid_exact_evm_payload_authorization_valid_before",
      transaction: "",
    });
    const { relayer } = devnet.accounts;
    expect(await devnet.client.getTransactionCount({ address: relayer.address })).toBe(0);
  });

  it("refuses new payments while the relayer has no gas money, and goes on when it gets some", async () => {
    const { devnet, start, pay } = await begin();
    const facilitator = await start();
    const events = listen(facilitator);
    const { relayer } = devnet.accounts;
    const paid = await pay();
    await devnet.client.setBalance({ address: relayer.address, value: 0n });
    const waiting = settle(facilitator, await pay());
    await vi.waitFor(() => expect(events).toContain("relayer_funds_exhausted"), 20_000);
    await expect(reserve(facilitator, paid)).rejects.toThrow(FacilitatorError);
    await devnet.client.setBalance({ address: relayer.address, value: parseEther("10") });
    await vi.waitFor(() => expect(events).toContain("relayer_funds_restored"), 10_000);
    expect(await waiting).toMatchObject({ success: true });
    const reservation = await reserve(facilitator, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: true });
  });

  it("settles a payment of a contract account by itself", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const facilitator = await start();
    const { buyer, seller } = devnet.accounts;
    const account = await devnet.deploySmartAccount({ owner: buyer.address });
    await devnet.mint({ to: account, amount: 1_000n });
    const from: `0x${string}` = `0x${account.slice(2).toLowerCase()}`;
    const payments = [pay(), pay({ authorization: { from } }), pay()];
    const settled = await Promise.all(
      (await Promise.all(payments)).map((paid) => settle(facilitator, paid)),
    );
    expect(settled.map(({ success }) => success)).toEqual([true, true, true]);
    expect(
      settled.filter(({ transaction }) => transaction === settled[1]?.transaction),
    ).toHaveLength(1);
    expect(await balanceOf(seller.address)).toBe(3_000n);
  });

  it.each(["emitsNoTransfer", "transfersLess", "emitsOtherSender", "burnsGas", "reverts"] as const)(
    "does not count a token that %s as paid",
    async (behaviour) => {
      const { devnet, start, pay } = await begin();
      const facilitator = await start();
      const { buyer } = devnet.accounts;
      const token = await devnet.deployMisbehavingToken("honest");
      await devnet.mint({ to: buyer.address, amount: 10_000n, token });
      const paid = await pay({ asset: token });
      const good = await pay();
      const reservations = [await reserve(facilitator, paid), await reserve(facilitator, good)];
      await devnet.client.writeContract({
        address: token,
        abi: [
          {
            type: "function",
            name: "setBehaviour",
            inputs: [{ type: "uint8" }],
            outputs: [],
            stateMutability: "nonpayable",
          },
        ],
        functionName: "setBehaviour",
        args: [behaviours[behaviour]],
      });
      const settled = await Promise.all([
        settle(facilitator, paid, reservations[0]),
        settle(facilitator, good, reservations[1]),
      ]);
      expect(settled.map(({ success }) => success)).toEqual([false, true]);
    },
  );

  it("settles one by one where there is no Multicall3", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    await devnet.client.setCode({ address: devnet.multicall3, bytecode: "0x" });
    const facilitator = await start();
    const payments = await Promise.all(Array.from({ length: 12 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(new Set(settled.map(({ transaction }) => transaction)).size).toBe(12);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(12_000n);
  });

  it("spreads over several addresses of one seed", async () => {
    const { devnet, start, pay, balanceOf } = await begin();
    const seedPhrase = "test test test test test test test test test test test junk";
    const facilitator = await start({
      network: { relayer: { seedPhrase, accountIndex: 1, addressCount: 3 } },
      mostPaymentsPerTransaction: 5,
      mostTransactionsInFlight: 1,
    });
    const payments = await Promise.all(Array.from({ length: 60 }, () => pay()));
    const settled = await Promise.all(payments.map((paid) => settle(facilitator, paid)));
    expect(settled.filter(({ success }) => success)).toHaveLength(60);
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(60_000n);
    const { signers } = await facilitator.getSupported();
    const counts = await Promise.all(
      (signers[devnet.network] ?? []).map((address) =>
        devnet.client.getTransactionCount({ address: `0x${address.slice(2)}` }),
      ),
    );
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(1);
  });
});
