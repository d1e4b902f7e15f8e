import { type Address, isNetwork, type Network } from "@coinslot/protocol";
import * as z from "zod";

/** A relayer whose key a process has. */
export interface ProcessRelayer {
  network: Network;
  /** In lower case. */
  relayer: Address;
  isRetiring: boolean;
}

const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .transform((text): Address => `0x${text.slice(2)}`);
const relayersSchema = z.array(
  z.object({
    network: z.string().refine(isNetwork),
    relayer: address,
    isRetiring: z.boolean(),
  }),
);

/** The relayers of a process as its row has them. Those of another release may be unreadable. */
export function readProcessRelayers(text: string | null): ProcessRelayer[] {
  if (text === null) return [];
  try {
    return relayersSchema.parse(JSON.parse(text));
  } catch {
    return [];
  }
}

/** As `processes.relayers` has them. */
export function writeProcessRelayers(relayers: readonly ProcessRelayer[]): string {
  return JSON.stringify(relayers);
}
