import * as z from "zod";

/**
 * Description of a schema in the OpenAPI document, beside its rules. Schemas with an `id` become
 * components.
 */
interface Documentation {
  id?: string;
  description?: string;
  examples?: readonly unknown[];
}

/** A registry of our own: the global one is shared with every other user of zod in the process. */
export const documentation: z.core.$ZodRegistry<Documentation> = z.registry<Documentation>();

/** Documents a schema, and returns it. */
export function documented<Schema extends z.ZodType>(schema: Schema, about: Documentation): Schema {
  documentation.add(schema, about);
  return schema;
}
