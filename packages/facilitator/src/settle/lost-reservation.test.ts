import { FacilitatorError, toLowerHex } from "@coinslot/protocol";
import { afterEach, expect, it } from "vitest";
import { type SettlingDevnet, startSettlingDevnet } from "../testing/settling-devnet.ts";

let settling: SettlingDevnet | undefined;

afterEach(async () => {
  await settling?.stop();
  settling = undefined;
});

it("a reservation that was taken away is a fault of ours: nobody has settled the payment, and it may be tried again", async () => {
  settling = await startSettlingDevnet("sqlite");
  const facilitator = await settling.start();
  const { devnet, pay } = settling;
  const { paymentPayload, paymentRequirements, authorization } = await pay();
  const request = {
    fingerprint: "GET /weather",
    value: authorization.value,
    validBefore: authorization.validBefore,
    payTo: toLowerHex(authorization.to),
    id: {
      network: devnet.network,
      asset: toLowerHex(devnet.token),
      payer: toLowerHex(authorization.from),
      nonce: authorization.nonce,
    },
  };
  const reserved = await facilitator.reserve(request);
  if (reserved.state !== "reserved") throw new Error(`The payment is ${reserved.state}.`);
  // As for an owner that was silent for too long, whoever gives it up.
  await facilitator.release(reserved.reservation, "outcome_unknown");

  const { reservation } = reserved;
  const settled = facilitator.settle(paymentPayload, paymentRequirements, { reservation });

  await expect(settled).rejects.toThrow(FacilitatorError);
  const again = await facilitator.reserve(request);
  expect(again).toMatchObject({ state: "reserved" });
  if (again.state !== "reserved") return;
  expect(
    await facilitator.settle(paymentPayload, paymentRequirements, {
      reservation: again.reservation,
    }),
  ).toMatchObject({ success: true });
});
