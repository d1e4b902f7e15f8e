import * as z from "zod";
import { documented } from "./documentation.ts";

/** A chain's name in paths and records, such as `plasma`. */
export const blockchainName = documented(z.string().min(1), {
  id: "BlockchainName",
  description: "A name from GET /api/v1/chains.",
  examples: ["ethereum"],
});

/** A token's name on its chain, such as `usdt`. */
export const tokenName = documented(z.string().min(1), {
  id: "TokenName",
  description: "A token that /chains lists for this blockchain; any other pair is a 400.",
  examples: ["usdt"],
});

/** An address in any letter case; whether it is one depends on the chain. */
export const addressText = documented(z.string().min(1), {
  id: "Address",
  description:
    "An address, percent-encoded, in any letter case. EVM chains compare and answer in lower case.",
  examples: ["0x90f79bf6eb2c4f870365e785982e1f101e93b906"],
});

/** An unsigned integer of up to 256 bits. */
export const amountText = documented(z.string().regex(/^(?:0|[1-9][0-9]{0,77})$/), {
  id: "Amount",
  description: "A whole number of the token's base units, as a decimal string.",
  examples: ["1000000"],
});
