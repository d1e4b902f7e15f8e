import { createReservationStore, paymentMiddleware, withReservations } from "@coinslot/express";
import { channelContracts, type Facilitator, toLowerHex } from "@coinslot/protocol";
import type { RequestHandler } from "express";
import { openChannelSeller } from "../../packages/facilitator/src/testing/channel-seller.ts";
import type { SellerOptions } from "./seller-process.ts";

/** Balance of each channel of a bench: no run uses it up. */
const balance = 10n ** 12n;

/**
 * Our middleware before the routes of a seller, which sells by channels on a ledger of its own. The
 * chain is a constant here: the watcher's mirror is no part of the figures.
 */
export async function createOurChannelGate({
  ledger,
  requirements: { network, payTo, asset, amount, extra = {} },
}: SellerOptions): Promise<{ gate: RequestHandler; close: () => Promise<void> }> {
  const seller = await openChannelSeller({
    url: ledger,
    network,
    contract: toLowerHex(channelContracts.settlement),
    receiverAuthorizer: toLowerHex(payTo),
    look: async () => ({
      balance,
      totalClaimed: 0n,
      withdrawRequestedAt: 0,
      refundNonce: 0n,
      secure: balance,
    }),
  });
  const price = {
    amount,
    asset,
    extra: { name: String(extra.name), version: String(extra.version) },
  };
  const accepts = { scheme: "batch-settlement" as const, network, payTo, price };
  const facilitator = {
    ...withReservations(noFacilitator, createReservationStore()),
    channels: seller.sales,
  };
  const gate = paymentMiddleware({ "GET /weather": { accepts } }, facilitator);
  await gate.ready();
  return { gate, close: seller.close };
}

/** Of other schemes there is none in this bench. */
const noFacilitator: Facilitator = {
  verify: () => Promise.reject(new Error("No transfers")),
  settle: () => Promise.reject(new Error("No transfers")),
  getSupported: () => ({ kinds: [], extensions: [], signers: {} }),
};
