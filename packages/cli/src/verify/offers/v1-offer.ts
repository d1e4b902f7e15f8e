import { DecodeError, isNameOfFirstPackages, parsePaymentRequiredV1 } from "@coinslot/protocol";
import * as z from "zod";
import type { Answer } from "../ask-seller.ts";
import { failed, passed, warning } from "../check.ts";
import { eip3009Ways } from "./eip3009-ways.ts";
import type { WireOffer } from "./read-offers.ts";

const bodySchema = z.object({ x402Version: z.literal(1), accepts: z.array(z.unknown()) });

/**
 * The rules of `x402-fetch` and `x402-axios`, beside the network's name. One bad entry spoils all.
 */
const legacyEntrySchema = z.object({
  scheme: z.literal("exact"),
  network: z.string(),
  maxAmountRequired: z.string().regex(/^\d+$/),
  resource: z.url(),
  description: z.string(),
  mimeType: z.string(),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  payTo: z.string(),
  maxTimeoutSeconds: z.int(),
  asset: z.string(),
  extra: z.record(z.string(), z.unknown()).optional(),
});

/** The JSON body of a 402, as clients of version 1 read it. */
export function readV1Offer({ body }: Answer): WireOffer {
  const value = parseJson(body);
  const isOffer = typeof value === "object" && value !== null && "x402Version" in value;
  if (!isOffer || value.x402Version !== 1) {
    return { status: "not offered", found: "the body is no offer of version 1", ways: [] };
  }
  try {
    const ways = eip3009Ways(parsePaymentRequiredV1(value));
    return { ...judge(value, ways.length), ways };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return { ...failed("the body cannot be read as an offer of version 1"), ways: [] };
  }
}

function judge(value: unknown, count: number) {
  const { accepts } = bodySchema.parse(value);
  if (accepts.length === 0) return failed("the body names no way to pay");
  const entries = accepts.map((entry) => legacyEntrySchema.safeParse(entry));
  if (!entries.every(({ success }) => success)) {
    return warning(
      "x402-fetch and x402-axios refuse the whole body: an entry lacks description, mimeType or an absolute resource, or has a member of a wrong type",
    );
  }
  if (!entries.every(({ data }) => isNameOfFirstPackages(data?.network ?? ""))) {
    return warning(
      "clients that know CAIP-2 read it; x402-fetch and x402-axios refuse the whole body for a network that is not a name of theirs",
    );
  }
  if (count === 0) return warning("no way is paid by an EIP-3009 authorization");
  return passed(`x402-fetch, x402-axios and @coinslot/client read it (${waysOf(count)})`);
}

function waysOf(count: number): string {
  return count === 1 ? "1 way to pay" : `${count} ways to pay`;
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
