import * as z from "zod";
import { readText } from "../read-text.ts";

const words = z.string().min(1).max(1024).optional().catch(undefined);
/** Our sellers give a code beside the members of a problem (RFC 9457). */
const problemSchema = z.object({ error: words, detail: words, title: words });

/** Time granted to a body: the status alone is the refusal, and nothing hangs on its reason. */
const maxReadMs = 2_000;

/** Reads the reason of a refusal, if it arrives: a code, or the problem in words. */
export async function readProblem(response: Response): Promise<string | undefined> {
  try {
    const text = await readText(response.clone(), maxReadMs);
    const { error, detail, title } = problemSchema.parse(JSON.parse(text ?? ""));
    return error ?? detail ?? title;
  } catch {
    return undefined;
  }
}
