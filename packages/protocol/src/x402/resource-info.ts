import * as z from "zod";
import { optionalOrNull } from "./optional-or-null.ts";

/** Sold resource: its absolute URL, its description, and the media type of its answer. */
export const resourceInfoSchema = z.object({
  url: z.string().min(1).max(4096),
  description: optionalOrNull(z.string().max(4096)),
  mimeType: optionalOrNull(z.string().max(256)),
});

/** Sold resource: its absolute URL, its description, and the media type of its answer. */
export type ResourceInfo = z.infer<typeof resourceInfoSchema>;
