import { FacilitatorError, type Reservation, toLowerHex } from "@coinslot/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CoinslotFacilitator } from "../../create-facilitator.ts";
import {
  enginesByDay,
  type SettlingDevnet,
  startSettlingDevnet,
} from "../../testing/settling-devnet.ts";

type Paid = Awaited<ReturnType<SettlingDevnet["pay"]>>;

describe.each(enginesByDay("sqlite"))("the settlement of a reservation, on %s", (engine) => {
  let settling: SettlingDevnet;
  let facilitator: CoinslotFacilitator;

  beforeEach(async () => {
    settling = await startSettlingDevnet(engine);
    facilitator = await settling.start();
  });

  afterEach(() => settling.stop());

  async function reserve({ authorization }: Paid): Promise<Reservation> {
    const { from, to, nonce, value, validBefore } = authorization;
    const { network, token } = settling.devnet;
    const reserved = await facilitator.reserve({
      id: { network, asset: toLowerHex(token), payer: toLowerHex(from), nonce },
      fingerprint: `GET /weather for ${value}`,
      value,
      validBefore,
      payTo: toLowerHex(to),
    });
    if (reserved.state !== "reserved") throw new Error(`The payment is ${reserved.state}.`);
    return reserved.reservation;
  }

  function settle({ paymentPayload, paymentRequirements }: Paid, reservation?: Reservation) {
    return facilitator.settle(paymentPayload, paymentRequirements, { reservation });
  }

  it("fails as an internal fault after the reservation was lost, and a retry of the payment settles", async () => {
    const paid = await settling.pay();
    const reservation = await reserve(paid);
    // As another process gives up a silent owner's payment.
    await facilitator.release(reservation, "outcome_unknown");
    await expect(settle(paid, reservation)).rejects.toThrow(FacilitatorError);
    expect(await settle(paid, await reserve(paid))).toMatchObject({ success: true });
  });

  it("moves the reserved amount, and nothing by another authorization with the same nonce", async () => {
    // From here on the queue is cached, and not read for each payment.
    await settle(await settling.pay());
    const paid = await settling.pay();
    const { nonce } = paid.authorization;
    const cheaper = await settling.pay({ amount: 400n, authorization: { nonce } });
    const settled = await settle(cheaper, await reserve(paid));
    expect(settled.success).toBe(false);
    expect(await settling.balanceOf(settling.devnet.accounts.seller.address)).toBe(1_000n);
  });
});
