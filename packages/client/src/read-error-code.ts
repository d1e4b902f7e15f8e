import * as z from "zod";
import { readText } from "./read-offer.ts";

const refusalSchema = z.object({ error: z.string() });

/** The code of a refusal that is no offer, from its body. The response can still be read afterwards. */
export async function readErrorCode(response: Response): Promise<string | undefined> {
  const text = await readText(response.clone());
  try {
    return refusalSchema.safeParse(JSON.parse(text ?? "null")).data?.error;
  } catch {
    return undefined;
  }
}
