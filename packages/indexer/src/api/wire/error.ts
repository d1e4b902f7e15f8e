import * as z from "zod";
import { documented } from "./documentation.ts";

/**
 * The one shape of every error, also of an item within a batch. Published clients know it by all
 * three fields.
 */
export const errorBody = documented(
  z.strictObject({
    error: documented(z.string(), {
      description: "The reason phrase of the HTTP status.",
      examples: ["Bad Request"],
    }),
    message: documented(z.string(), { description: "The fault, for people." }),
    status: documented(z.int(), {
      description: "The HTTP status; within a batch, that of the item.",
      examples: [400],
    }),
  }),
  { id: "Error", description: "An error." },
);

export type ErrorBody = z.infer<typeof errorBody>;
