import * as z from "zod";

const printable = /^[\x20-\x7e]*$/;
/** RFC 3339, with seconds and zone. */
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

const text = (maxLength: number) => z.string().max(maxLength).regex(printable);
const encoded = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[A-Za-z0-9_-]*={0,2}$/);

/** An instant of a challenge: RFC 3339, with seconds and zone. */
export const instantSchema = z
  .string()
  .max(40)
  .refine((value) => dateTime.test(value) && !Number.isNaN(Date.parse(value)), "expected RFC 3339");

/**
 * A challenge as it travels, in a header and inside a credential: `request` and `opaque` stay
 * encoded. Parameters that are not known are dropped.
 */
export const challengeSchema = z.object({
  /** Binds all other members but `description`. */
  id: text(512).min(1),
  /** The protection space; the host of the request in most cases. */
  realm: text(512),
  method: text(64).regex(/^[a-z0-9-]+$/),
  intent: text(64).min(1),
  /** base64url of canonical JSON. */
  request: encoded(16_384),
  expires: instantSchema.optional(),
  /** RFC 9530, of the paid request's body. */
  digest: text(256).optional(),
  /** base64url of canonical JSON: the seller's own, returned untouched. */
  opaque: encoded(4096).optional(),
  /** For display alone; the id does not bind it. */
  description: z.string().max(1024).optional(),
  /** The header in which the credential is asked for; `Authorization` where it is absent. */
  header: text(64).optional(),
});

/** A challenge of the `Payment` scheme, as it travels. */
export type Challenge = z.infer<typeof challengeSchema>;

/** The members of a challenge, in the order in which they are written. */
export const challengeMembers = [
  "id",
  "realm",
  "method",
  "intent",
  "request",
  "description",
  "digest",
  "expires",
  "header",
  "opaque",
] as const satisfies readonly (keyof Challenge)[];
