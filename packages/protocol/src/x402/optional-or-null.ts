import type * as z from "zod";

/**
 * An optional member that may also be `null`, the form of an absent value in some languages. Either
 * is read as `undefined`.
 */
export function optionalOrNull<T extends z.ZodType>(schema: T) {
  return schema
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();
}
