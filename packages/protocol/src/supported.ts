import { z } from "zod";
import { optionalOrNull } from "./optional-or-null.ts";

const kindSchema = z
  .object({
    x402Version: z.number().int(),
    scheme: z.string().max(64),
    network: z.string().max(64),
    extra: optionalOrNull(z.record(z.string().max(128), z.unknown())),
  })
  .transform(({ extra, ...kind }) => ({ ...kind, ...(extra ? { extra } : {}) }));

/** The answer of `/supported`: which versions, schemes and networks a facilitator serves. */
export const supportedSchema = z.object({
  kinds: z.array(kindSchema).max(1024),
  extensions: z.array(z.string().max(128)).max(256).default([]),
  signers: z.record(z.string().max(64), z.array(z.string().max(128)).max(256)).default({}),
});

/** The answer of `/supported`. */
export type Supported = z.infer<typeof supportedSchema>;
