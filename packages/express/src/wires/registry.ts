import type { ReservingFacilitator } from "@coinslot/protocol";
import type { Route } from "../routes/read-routes.ts";
import type { Settings } from "../settings.ts";
import { advertiseX402 } from "./advertise-x402.ts";
import { advertiseCharges } from "./mpp/advertise-charges.ts";
import { findSecrets } from "./mpp/find-secrets.ts";
import { createMpp, exposedByMpp } from "./mpp/mpp.ts";
import type { AdvertisedWay, Advertisement, Wire } from "./wire.ts";
import { createX402V1, exposedByX402V1 } from "./x402-v1.ts";
import { exposedByX402V2, x402V2 } from "./x402-v2.ts";

/**
 * Creates every wire of a gate, in their order in a 402 answer. The only file outside a wire's own
 * that imports one.
 */
export async function createWires(options: {
  settings: Pick<Settings, "legacyNetworkNames" | "mpp" | "publicUrl" | "now" | "onError">;
  facilitator: Pick<ReservingFacilitator, "challengeSecret">;
  routes: readonly Pick<Route, "accepts" | "mpp">[];
}): Promise<readonly Wire[]> {
  const { settings } = options;
  const secrets = await findSecrets(options);
  return [x402V2, createX402V1(settings), createMpp({ ...settings, secrets })];
}

/** The part of every wire in the `x-payment-info` of a route. */
export function advertise(ways: readonly AdvertisedWay[]): Advertisement {
  const parts = [advertiseX402(ways), advertiseCharges(ways)];
  return {
    protocols: parts.flatMap(({ protocols }) => protocols),
    offers: parts.flatMap(({ offers }) => offers),
  };
}

/** Headers of answers that a page on another origin may read, whichever wires a gate has. */
export const exposedHeaders: readonly string[] = [
  ...exposedByX402V2,
  ...exposedByX402V1,
  ...exposedByMpp,
];
