import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import type { RequestHandler } from "express";
import type { SellerOptions } from "./seller-process.ts";

/** Our middleware before the routes of a seller, with our facilitator in the same process. */
export async function createOurGate(
  options: SellerOptions,
): Promise<{ gate: RequestHandler; consoleUrl?: string; close: () => Promise<void> }> {
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
    { mpp: options.mpp, paywall: await paywallOf(options) },
  );
  await middleware.ready();
  const { consoleKey: key } = options;
  if (key === undefined) return { gate: middleware, close: facilitator.close };
  // Loaded where it is used, as the paywall is: the memory of a seller is measured, too.
  const { startConsole } = await import("@coinslot/console");
  const console = await startConsole(facilitator, { port: 0, key, print: () => undefined });
  return {
    gate: middleware,
    consoleUrl: console.url,
    async close() {
      await console.close();
      await facilitator.close();
    },
  };
}

async function paywallOf({ hasPaywall = false }: SellerOptions) {
  if (!hasPaywall) return undefined;
  const { paywall } = await import("@coinslot/paywall");
  return paywall();
}
