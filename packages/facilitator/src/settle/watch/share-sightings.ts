import { type BlockHeader, blockHeaderSchema } from "@coinslot/chain";
import { type Address, isNetwork, type Network, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import type { LedgerContext } from "../../ledger/ledger-context.ts";
import type { Logger } from "../../logger.ts";

/** A process's reads of a chain. */
export interface Sighting {
  head?: BlockHeader | undefined;
  /** In wei per gas. */
  tip?: bigint | undefined;
  /** Of relayers, in wei. */
  balances?: readonly { relayer: Address; balance: bigint }[] | undefined;
}

const channel = "coinslot_chain";
/** Relayers in one message: PostgreSQL takes 8,000 bytes. */
const relayersPerMessage = 50;

const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/)
  .transform(BigInt);
const address = z
  .string()
  .regex(/^0x[0-9a-f]{40}$/)
  .transform((text): Address => `0x${text.slice(2)}`);
const sightingSchema = z.object({
  network: z.string().refine(isNetwork),
  head: blockHeaderSchema.optional(),
  tip: quantity.optional(),
  balances: z.array(z.object({ relayer: address, balance: quantity })).optional(),
});

/**
 * Tells the other processes of a ledger what this one has read. They are hints as a node's answers
 * are. No payment is served, final or over by them, and a process that gets none reads the chain
 * itself.
 */
export function shareSighting(
  { ledger, logger }: { ledger: Pick<LedgerContext, "notify">; logger: Logger },
  network: Network,
  { head, tip, balances = [] }: Sighting,
): void {
  for (let start = 0; start === 0 || start < balances.length; start += relayersPerMessage) {
    const message = {
      network,
      ...(head && start === 0 && { head: hexHeader(head) }),
      ...(tip !== undefined && start === 0 && { tip: hexOf(tip) }),
      balances: balances
        .slice(start, start + relayersPerMessage)
        .map(({ relayer, balance }) => ({ relayer: toLowerHex(relayer), balance: hexOf(balance) })),
    };
    ledger.notify(channel, JSON.stringify(message)).catch((err: unknown) => {
      logger.warn({ err, network }, "other processes could not be notified of the chain");
    });
  }
}

/** Calls `onSighting` with what other processes have read of a network. */
export function listenToSightings(
  ledger: Pick<LedgerContext, "listen">,
  network: Network,
  onSighting: (sighting: Sighting) => void,
): Promise<() => Promise<void>> {
  return ledger.listen(channel, (payload) => {
    // No payload: the connection was lost for a while. The next look of the reader makes up for it.
    if (payload === undefined) return;
    const sighting = sightingSchema.safeParse(parseJson(payload)).data;
    if (sighting?.network === network) onSighting(sighting);
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As a node writes it. */
function hexHeader({ number, hash, parentHash, timestamp, baseFeePerGas }: BlockHeader): object {
  return {
    number: hexOf(number),
    hash,
    parentHash,
    timestamp: hexOf(timestamp),
    ...(baseFeePerGas !== undefined && { baseFeePerGas: hexOf(baseFeePerGas) }),
  };
}

function hexOf(value: bigint): string {
  return `0x${value.toString(16)}`;
}
