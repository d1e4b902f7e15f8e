import * as z from "zod";
import { type Caip2, isCaip2, parseNetwork } from "../money/network.ts";
import { optionalOrNull } from "./optional-or-null.ts";

const kindSchema = z.object({
  x402Version: z.number().int(),
  scheme: z.string().max(64),
  network: z.string().max(64),
  extra: optionalOrNull(z.record(z.string().max(128), z.unknown())),
});

/** One way to pay that a facilitator serves, its network in CAIP-2 form of any namespace. */
interface SupportedKind {
  x402Version: number;
  scheme: string;
  network: Caip2;
  extra?: Record<string, unknown>;
}

/**
 * The answer of `/supported`: the versions, schemes and networks of a facilitator. Names of version
 * 1 are read into CAIP-2; a kind on an unknown network is left out.
 */
export const supportedSchema = z.object({
  kinds: z
    .array(kindSchema)
    .max(1024)
    .transform((kinds) => kinds.flatMap(readKind)),
  extensions: z
    .array(z.string().max(128))
    .max(256)
    .nullish()
    .transform((extensions) => extensions ?? []),
  signers: z
    .record(z.string().max(64), z.array(z.string().max(128)).max(256))
    .nullish()
    .transform((signers) => signers ?? {}),
});

/** The answer of `/supported`, in the internal form. */
export type Supported = z.infer<typeof supportedSchema>;

/** The answer of `/supported` as any implementation gives it; `supportedSchema` reads it. */
export type AnySupported = z.input<typeof supportedSchema>;

/** Returns whether a value is an answer of `/supported`, to be read with `supportedSchema`. */
export function isSupported(value: unknown): value is AnySupported {
  return supportedSchema.safeParse(value).success;
}

function readKind({ network: name, extra, ...kind }: z.infer<typeof kindSchema>): SupportedKind[] {
  const network = isCaip2(name) ? name : parseNetwork(name);
  return network === undefined ? [] : [{ ...kind, network, ...(extra ? { extra } : {}) }];
}
