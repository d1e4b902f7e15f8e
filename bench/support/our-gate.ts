import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import type { RequestHandler } from "express";
import type { SellerOptions } from "./seller-process.ts";

/** Our middleware before the routes of a seller, with our facilitator in the same process. */
export async function createOurGate(
  options: SellerOptions,
): Promise<{ gate: RequestHandler; close: () => Promise<void> }> {
  const { network, payTo, asset, amount, maxTimeoutSeconds, extra = {} } = options.requirements;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [options.rpcUrl], relayer: options.relayer }],
    ledger: options.ledger,
  });
  await facilitator.ready();
  const price = {
    amount,
    asset,
    extra: { name: String(extra.name), version: String(extra.version), decimals: 6 },
  };
  const accepts = [{ scheme: "exact" as const, network, payTo, price }];
  const middleware = paymentMiddleware(
    { "GET /weather": { accepts, maxTimeoutSeconds } },
    facilitator,
    { mpp: options.mpp },
  );
  await middleware.ready();
  return { gate: middleware, close: facilitator.close };
}
