import { behaviours, testUsdt0 } from "@coinslot/devnet";
import { describe, expect, it, vi } from "vitest";
import {
  cancel,
  idOf,
  listen,
  reserve,
  settle,
  submitAsStranger,
  useSettlingDevnet,
} from "../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("what the chain says of a payment", () => {
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
      const hash = await devnet.client.writeContract({
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
      // Else the transfer may come before it in a block.
      await devnet.client.waitForTransactionReceipt({ hash });
      const settled = await Promise.all([
        settle(facilitator, paid, reservations[0]),
        settle(facilitator, good, reservations[1]),
      ]);
      expect(settled.map(({ success }) => success)).toEqual([false, true]);
    },
  );
});
