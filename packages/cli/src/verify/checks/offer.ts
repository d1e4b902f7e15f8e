import type { WireCheck } from "../check.ts";

/** The protocols by which the offer can be read. */
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
