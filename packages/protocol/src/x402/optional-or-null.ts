import type * as z from "zod";

/**
 * An optional member that may also be written as `null`, which is how some languages write what is
 * absent. Either is read as `undefined`.
 */
export function optionalOrNull<T extends z.ZodType>(schema: T) {
  return schema
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();
}
