import { addressSchema, ConfigurationError, networkSchema, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";

/**
 * Target of a stop switch: new payments on a network, or of a route as the seller wrote it; new
 * refunds from a float account. A further kind is a further member here. The ledger keeps any, and
 * a reader passes over those that it does not know.
 */
export const stopTargetSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("network"), name: networkSchema }),
  z.object({ kind: z.literal("route"), name: z.string().min(1).max(500) }),
  z.object({ kind: z.literal("float"), name: addressSchema.overwrite(toLowerHex) }),
]);

export type StopTarget = z.infer<typeof stopTargetSchema>;

/** A set stop switch. */
export type Stop = StopTarget & {
  /** In words. Buyers read it. */
  reason: string;
  /** Unix milliseconds. */
  stoppedAt: number;
};

const maxReasonLength = 200;

const reasonSchema = z
  .string()
  .trim()
  .min(1)
  .max(maxReasonLength)
  .regex(/^\P{Cc}*$/u);

/** A change of a stop switch. */
export const stopChangeSchema = z.discriminatedUnion("operation", [
  z.strictObject({ operation: z.literal("set"), target: stopTargetSchema, reason: reasonSchema }),
  z.strictObject({ operation: z.literal("clear"), target: stopTargetSchema }),
]);

export type StopChange = z.infer<typeof stopChangeSchema>;

const stopSchema = z.intersection(
  stopTargetSchema,
  z.object({ reason: z.string(), stoppedAt: z.number() }),
);

/** Result of a change. */
export const stopReportSchema = z.object({
  /** Every switch that is set now, without those of kinds that only a newer seller knows. */
  stops: z.array(z.unknown()).transform((stops) =>
    stops.flatMap((stop) => {
      const read = stopSchema.safeParse(stop);
      return read.success ? [read.data] : [];
    }),
  ),
  /** True if the ledger has met the network, the route or the float. A new one may be unknown. */
  isKnown: z.boolean(),
  /** True if a process of an older release uses the ledger: it does not know the switch. */
  runsOlderProgram: z.boolean(),
});

export type StopReport = z.infer<typeof stopReportSchema>;

/**
 * Checks a change that a caller passes.
 *
 * @throws ConfigurationError
 */
export function readStopChange(change: {
  operation: StopChange["operation"];
  target: { kind: string; name: string };
  reason?: string;
}): StopChange {
  const read = stopChangeSchema.safeParse(change);
  if (read.success) return read.data;
  const { kind, name } = change.target;
  throw new ConfigurationError("The stop switch", [
    stopTargetSchema.safeParse(change.target).success
      ? `the reason must have 1 to ${maxReasonLength} characters, without control characters`
      : `"${kind}" must be "network", "route" or "float", and "${name}" its name, such as eip155:9745, "GET /weather" or an address`,
  ]);
}
