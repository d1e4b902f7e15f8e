import { behaviours } from "@coinslot/devnet";
import { describe, expect, it } from "vitest";
import {
  cancel,
  drain,
  reserve,
  settle,
  useSettlingDevnet,
} from "../../testing/settling-actions.ts";

const begin = useSettlingDevnet();

describe("settlement by the chain's evidence", () => {
  it("settles forty-nine of fifty payments beside a poisoned one", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start({ releaseLimit: { count: 50, windowSeconds: 60 } });
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

  it("withholds success when the payer empties its account after the reservation", async () => {
    const here = await begin();
    const { devnet, start, pay, balanceOf } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    const [stranger] = devnet.accounts.others;
    if (stranger === undefined) throw new Error("No account");
    await drain(here);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
    expect(await balanceOf(devnet.accounts.seller.address)).toBe(0n);
  });

  it("refuses a cancelled authorization", async () => {
    const here = await begin();
    const { devnet, start, pay } = here;
    const facilitator = await start();
    const paid = await pay();
    const reservation = await reserve(facilitator, paid);
    await cancel(here, devnet.accounts.buyer, paid);
    expect(await settle(facilitator, paid, reservation)).toMatchObject({ success: false });
  });

  it.each(["emitsNoTransfer", "transfersLess", "emitsOtherSender", "burnsGas", "reverts"] as const)(
    "refuses a token that %s",
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
      // Otherwise the transfer may come before it in a block.
      await devnet.client.waitForTransactionReceipt({ hash });
      const settled = await Promise.all([
        settle(facilitator, paid, reservations[0]),
        settle(facilitator, good, reservations[1]),
      ]);
      expect(settled.map(({ success }) => success)).toEqual([false, true]);
    },
  );
});
