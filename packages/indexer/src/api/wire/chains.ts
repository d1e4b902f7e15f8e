import * as z from "zod";
import { documented } from "./documentation.ts";
import { blockchainName, tokenName } from "./names.ts";

const caseSensitivity = documented(
  z.strictObject({
    address: z.union([z.boolean(), z.string()]).optional(),
    tx: z.boolean().optional(),
    block: z.boolean().optional(),
  }),
  { description: "Absent on EVM chains, where letter case means nothing." },
);

/** Closed on all levels. */
export const chainsBody = documented(
  z.strictObject({
    chains: z.array(
      z.strictObject({
        name: blockchainName,
        tokens: z.array(tokenName),
        caseSensitive: caseSensitivity.optional(),
      }),
    ),
  }),
  { id: "Chains", description: "The blockchains that are served, and their tokens." },
);

export type ChainsBody = z.infer<typeof chainsBody>;
