import { z } from "zod";

/** What is sold: its absolute URL, what it is, and the media type of its answer. */
export const resourceInfoSchema = z.object({
  url: z.string().min(1).max(4096),
  description: z.string().max(4096).optional(),
  mimeType: z.string().max(256).optional(),
});

/** What is sold: its absolute URL, what it is, and the media type of its answer. */
export type ResourceInfo = z.infer<typeof resourceInfoSchema>;
