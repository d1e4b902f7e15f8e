import { supportedSchema, toLowerHex } from "@coinslot/protocol";
import { BatchSettlementEvmScheme, type ChannelStorage } from "@x402/evm/batch-settlement/server";
import { FileChannelStorage } from "@x402/evm/batch-settlement/server/file-storage";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import type { RequestHandler } from "express";
import type { SellerOptions } from "./seller-process.ts";

/** Balance of each channel of a bench: no run uses it up. */
const balance = 10n ** 12n;

/**
 * The reference's middleware before the routes of a seller, which sells by channels. The chain is a
 * constant here, as it is for ours: its facilitator answers at once.
 */
export function createReferenceChannelGate(options: SellerOptions): RequestHandler {
  const { network, payTo, asset, amount, extra = {} } = options.requirements;
  const receiver = toLowerHex(payTo);
  const scheme = new BatchSettlementEvmScheme(receiver, {
    ...storageOf(options),
    withdrawDelay: 86_400,
    receiverAuthorizerSigner: {
      address: receiver,
      signTypedData: () => Promise.reject(new Error("Nothing is claimed in this bench")),
    },
  });
  const server = new x402ResourceServer({
    verify: async ({ payload }) => {
      const { channelConfig, voucher } = payload as {
        channelConfig: { payer: string };
        voucher: { channelId: string };
      };
      const state = { balance: `${balance}`, totalClaimed: "0", refundNonce: "0" };
      const { channelId } = voucher;
      return {
        isValid: true,
        payer: channelConfig.payer,
        extra: { ...state, channelId, withdrawRequestedAt: 0 },
      };
    },
    settle: () => Promise.reject(new Error("Nothing is settled in this bench")),
    getSupported: async () =>
      supportedSchema.parse({
        kinds: [{ x402Version: 2, scheme: "batch-settlement", network }],
        extensions: [],
        signers: {},
      }),
  }).register(network, scheme);
  const price = { amount, asset, extra };
  const accepts = { scheme: "batch-settlement", network, payTo: receiver, price };
  return paymentMiddleware({ "GET /weather": { accepts } }, server);
}

/** Its file store under the ledger's name, or its memory. */
function storageOf({ ledger }: SellerOptions): { storage?: ChannelStorage } {
  const folder = /^file:(.+)$/.exec(ledger)?.[1];
  return folder === undefined ? {} : { storage: new FileChannelStorage({ directory: folder }) };
}
