import * as z from "zod";
import { freezeMessage } from "./frozen-message.ts";

const extensionSchema = z.object({
  info: z.object({ id: z.string().regex(/^[A-Za-z0-9_-]{16,128}$/) }),
});

/**
 * The declaration of `payment-identifier` in an offer: without it, clients of the reference send no
 * key. A key is optional.
 */
export const paymentIdentifierExtension = freezeMessage({
  "payment-identifier": {
    info: { required: false },
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: {
        required: { type: "boolean" },
        id: { type: "string", minLength: 16, maxLength: 128, pattern: "^[a-zA-Z0-9_-]+$" },
      },
      required: ["required"],
    },
  },
});

/**
 * The buyer's idempotency key in the `payment-identifier` extension of a version 2 payment. It has
 * 16 to 128 letters, digits, hyphens and underscores.
 */
export function paymentIdentifier(payload: {
  x402Version: 1 | 2;
  extensions?: Record<string, unknown> | undefined;
}): string | undefined {
  if (payload.x402Version === 1) return undefined;
  const said = payload.extensions?.["payment-identifier"];
  if (said === undefined) return undefined;
  const extension = extensionSchema.safeParse(said);
  return extension.success ? extension.data.info.id : undefined;
}
