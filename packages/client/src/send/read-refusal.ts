import * as z from "zod";
import { readText } from "../wires/read-text.ts";

const refusalSchema = z.object({
  /** A code for programs. It is cut: a seller must not fill a log. */
  error: z.string().transform((code) => code.slice(0, 256)),
  /** True if the payment has moved money, where the seller is certain of it. */
  charged: z.boolean().optional().catch(undefined),
});

/** A refusal that is no offer, as our sellers write them. */
export type Refusal = z.infer<typeof refusalSchema>;

/**
 * Reads a refusal from the body of an answer. The response can still be read afterwards.
 *
 * @param timeoutMs only the part of the body that has arrived by then is read
 */
export async function readRefusal(
  response: Response,
  timeoutMs?: number,
): Promise<Refusal | undefined> {
  const text = await readText(response.clone(), timeoutMs);
  try {
    return refusalSchema.safeParse(JSON.parse(text ?? "null")).data;
  } catch {
    return undefined;
  }
}
