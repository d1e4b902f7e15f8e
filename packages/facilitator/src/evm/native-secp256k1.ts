import { createRequire } from "node:module";
import type { ecdsaRecover } from "secp256k1";
import * as z from "zod";

const bindingSchema = z.object({
  ecdsaRecover: z.custom<typeof ecdsaRecover>((value) => typeof value === "function"),
});

/**
 * libsecp256k1, as a binary for this machine. The package's own entry would silently choose a slow
 * implementation, so this loads its bindings.
 *
 * @throws where there is no binary.
 */
export function loadNativeSecp256k1(): z.infer<typeof bindingSchema> {
  const binding: unknown = createRequire(import.meta.url)("secp256k1/bindings.js");
  return bindingSchema.parse(binding);
}
