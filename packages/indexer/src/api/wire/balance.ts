import * as z from "zod";
import { documented } from "./documentation.ts";
import { amountText, blockchainName, tokenName } from "./names.ts";

/** Closed on both levels. */
export const balanceBody = documented(
  z.strictObject({
    tokenBalance: z.strictObject({
      blockchain: blockchainName,
      token: tokenName,
      amount: amountText,
    }),
  }),
  { id: "BalanceResult", description: "The balance of one token at one address." },
);

export type BalanceBody = z.infer<typeof balanceBody>;
