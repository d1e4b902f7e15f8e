import type { WireCheck } from "../check.ts";

/** Which clients can read the offer. */
export const offer: WireCheck = {
  name: "offer",
  scope: "wire",
  payments: 0,
  needsPayer: false,
  async run({ unpaid }, wire) {
    const { status, found } = unpaid.offers[wire];
    return { status, found };
  },
};
