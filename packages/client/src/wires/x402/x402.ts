import {
  channelScheme,
  DecodeError,
  decodeReceipt,
  headerName,
  type Offer,
  type OfferedRequirements,
  paymentFlowSchema,
  readChannelOffer,
  type SettleResponse,
} from "@coinslot/protocol";
import type { OfferedWay, Wire } from "../wire.ts";
import { readOffer } from "./read-offer.ts";
import { writeChannelPayment, writePayment } from "./write-payment.ts";

/** x402: version 2 in headers, version 1 in the body of a 402 answer. */
export const x402: Wire = {
  name: "x402",
  async readOffer(response, { timeoutMs }) {
    const offer = await readOffer(response, timeoutMs);
    return offer && waysOf(offer);
  },
  carriesPayment: (headers) =>
    headers.has(headerName.payment) || headers.has(headerName.paymentSignature),
  writes: (name) => name === headerName.payment || name === headerName.paymentSignature,
  readReceipt,
  asksChain: false,
  readReason: async (response) => (await readOffer(response))?.error,
};

/** The ways to pay of an offer, in its order. */
export function waysOf(offer: Offer): OfferedWay[] {
  return offer.accepts.map((offered): OfferedWay => {
    const { network, asset, payTo, amount, maxTimeoutSeconds, extra } = offered.requirements;
    return {
      protocol: "x402",
      ...{ network, asset, payTo, amount },
      token: { name: extra?.name, version: extra?.version, decimals: extra?.decimals },
      fault: findFault(offered),
      resource: offered.x402Version === 1 ? offered.resourceUrl : offer.resource?.url,
      description: offer.resource?.description,
      endAt: (now) => now + maxTimeoutSeconds,
      write: (payload, idempotencyKey) => writePayment({ payload, offered, offer, idempotencyKey }),
      ...channelOf(offered, offer),
    };
  });
}

/** The terms of a channel, if a version 2 entry has readable ones with deposits by EIP-3009. */
function channelOf(
  offered: OfferedRequirements,
  offer: Offer,
): Pick<OfferedWay, "channel" | "writeChannel"> {
  if (offered.x402Version === 1 || offered.requirements.scheme !== channelScheme) return {};
  const channel = readChannelOffer(offered.requirements);
  if (channel === undefined || channel.transferMethod !== "eip3009") return {};
  return {
    channel,
    writeChannel: (payload, idempotencyKey) =>
      writeChannelPayment({ payload, accepted: offered.accepted, offer, idempotencyKey }),
  };
}

function findFault({ requirements }: OfferedRequirements): string | undefined {
  const { scheme, extra } = requirements;
  if (scheme !== "exact" || (extra?.assetTransferMethod ?? "eip3009") !== "eip3009") {
    return "Only the scheme exact with EIP-3009 transfers is paid";
  }
  // Another flow may settle on other terms than those that this client accepted.
  if (!paymentFlowSchema.safeParse(extra?.paymentFlow ?? "authorization").success) {
    const flows = paymentFlowSchema.options.join(" and ");
    return `Only the payment flows ${flows} are paid, and the offer has another`;
  }
  return undefined;
}

function readReceipt(headers: Headers): SettleResponse | undefined {
  const header =
    headers.get(headerName.paymentResponse) ?? headers.get(headerName.paymentResponseV1);
  if (header === null) return undefined;
  try {
    return decodeReceipt(header);
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
