import { expect, it } from "vitest";
import { createFacilitatorClient, paymentMiddleware } from "../index.ts";
import { option } from "../testing/shop.ts";

it("a route that promises refunds is refused with a facilitator that keeps no payments", () => {
  const remote = createFacilitatorClient({ url: "https://facilitator.example" });
  const accepts = option();
  const gate = () =>
    paymentMiddleware(
      { "GET /a": { accepts, refund: "undelivered" }, "GET /b": { accepts } },
      remote,
    );
  expect(gate).toThrow('"GET /a": refund needs a facilitator in this process');
});
