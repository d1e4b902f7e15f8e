import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { supportedSchema } from "@coinslot/protocol";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import type { RequestHandler } from "express";
import { createReferenceAccount } from "./reference-account.ts";
import type { SellerOptions } from "./seller-process.ts";

/**
 * The reference's middleware before the routes of a seller, with its facilitator in the same
 * process.
 */
export function createReferenceGate(options: SellerOptions): RequestHandler {
  const { network, payTo, asset, amount, extra = {}, maxTimeoutSeconds } = options.requirements;
  const { chainId, rpcUrl, relayer } = options;
  if (!("privateKey" in relayer)) throw new TypeError("The reference takes a private key alone");
  const account = createReferenceAccount(relayer.privateKey);
  const facilitator = createReferenceFacilitator({ chainId, network, rpcUrl }, account);
  const resourceServer = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => supportedSchema.parse(facilitator.getSupported()),
  }).register(network, new ExactEvmScheme());
  const price = { amount, asset, extra };
  const accepts = { scheme: "exact", network, payTo, price, maxTimeoutSeconds };
  return paymentMiddleware({ "GET /weather": { accepts } }, resourceServer);
}
