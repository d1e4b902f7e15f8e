import * as z from "zod";
import { documented } from "./documentation.ts";
import { amountText, blockchainName, tokenName } from "./names.ts";

const position = z.int().min(0);

/** One transfer. Open, so that it may carry more: clients keep fields that they do not know. */
export const transferRecord = documented(
  z.looseObject({
    blockchain: blockchainName,
    blockNumber: position,
    transactionHash: z.string(),
    transferIndex: documented(z.int().min(0), {
      description: "Position among the transfers of this token in its transaction, from 0.",
    }),
    token: tokenName,
    amount: amountText,
    timestamp: documented(z.int().min(0), {
      description: "Time of the block, in milliseconds since the Unix epoch.",
    }),
    transactionIndex: documented(position.nullable(), {
      description: "Position of the transaction in its block.",
    }),
    logIndex: documented(position.nullable(), {
      description: "Position of the event in its block.",
    }),
    from: documented(z.string().nullable(), {
      description: "The sender; the zero address where tokens were made.",
    }),
    to: documented(z.string().nullable(), {
      description: "The recipient; the zero address where tokens were destroyed.",
    }),
    blockHash: z.string().optional(),
    confirmations: documented(position.optional(), {
      description: "Blocks from this one to the newest indexed one, both counted.",
    }),
    finalized: documented(z.boolean().optional(), {
      description:
        "Whether the block can no longer be replaced by another, and was read twice or proven.",
    }),
  }),
  { id: "Transfer", description: "A transfer of one token." },
);

export type TransferRecord = z.infer<typeof transferRecord>;

/** Closed: the cursor of the next page is in the `Link` header. */
export const transfersBody = documented(
  z.strictObject({ transfers: z.array(transferRecord).max(1_000) }),
  { id: "TransfersResult", description: "Transfers, in the requested order." },
);

export type TransfersBody = z.infer<typeof transfersBody>;
