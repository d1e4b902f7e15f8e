import * as z from "zod";

const schema = z.object({
  address: z.string(),
  topics: z.array(z.string()),
  blockNumber: z
    .string()
    .regex(/^0x[0-9a-f]{1,13}$/i)
    .transform(Number),
});

/**
 * Place of a log of any event, and the filter that finds it again. It is undefined for an entry
 * that is no log.
 */
export function parseLogPlace(
  log: unknown,
): { block: number; address: string; topics: string[] } | undefined {
  const { data } = schema.safeParse(log);
  return data && { block: data.blockNumber, address: data.address, topics: data.topics };
}
