import { headerName, isPaymentScheme } from "@coinslot/protocol";
import type { Wire } from "../wire.ts";
import { readChallenges } from "./read-challenges.ts";
import { readProblem } from "./read-problem.ts";
import { readReceipt } from "./read-receipt.ts";

/**
 * MPP: challenges of the `Payment` scheme, method `evm`, intent `charge`, paid by EIP-3009. Its
 * receipts may leave out payer and chain, so each is compared with the chain.
 */
export const mpp: Wire = {
  name: "mpp",
  async readOffer({ headers }, { request, now }) {
    const header = headers.get(headerName.authenticate);
    if (header === null) return undefined;
    return readChallenges(header, {
      now,
      hasAuthorization: request.headers.has(headerName.authorization),
    });
  },
  carriesPayment: (headers) =>
    headers.has(headerName.paymentAuthorization) ||
    isPaymentScheme(headers.get(headerName.authorization) ?? ""),
  writes: (name) => name === headerName.authorization || name === headerName.paymentAuthorization,
  readReceipt,
  asksChain: true,
  readReason: readProblem,
};
