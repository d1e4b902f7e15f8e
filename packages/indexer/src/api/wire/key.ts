import * as z from "zod";
import { documented } from "./documentation.ts";

const milliseconds = z.number().min(0);
const lifetime = documented(milliseconds, {
  description: "Lifetime in milliseconds; 0 never expires.",
});
const time = documented(milliseconds, { description: "Milliseconds since the Unix epoch." });
const label = documented(z.string().max(200), { description: "Words for people." });

/** The properties that a caller may choose for a new key. */
export const keyRequest = documented(
  z.strictObject({
    label: label.optional(),
    ttl: documented(
      z
        .int()
        .min(0)
        .max(100 * 365 * 86_400_000)
        .optional(),
      { description: "Lifetime in milliseconds; 0 never expires." },
    ),
  }),
  { id: "KeyRequest" },
);

export type KeyRequest = z.infer<typeof keyRequest>;

const keyFields = {
  hashedKey: documented(z.string(), { description: "Names the key; it cannot be used as one." }),
  owner: z.string(),
  ttl: lifetime,
  label: label.optional(),
  createdAt: time,
  lastActive: time,
};

/** A key as it is listed: never its plaintext. */
export const keyInfo = documented(
  z.strictObject({
    ...keyFields,
    max: documented(z.number().optional(), {
      description:
        "Requests that this key may make in each timeWindow, where its limits are raised.",
    }),
    timeWindow: documented(z.number().optional(), { description: "Milliseconds." }),
  }),
  { id: "KeyInfo", description: "A key." },
);

export type KeyInfo = z.infer<typeof keyInfo>;

export const keyListBody = documented(z.strictObject({ keys: z.array(keyInfo) }), {
  id: "KeyList",
  description: "The keys of the caller's owner.",
});

export const keyCreatedBody = documented(
  z.strictObject({
    key: documented(z.string(), { description: "The key itself, shown this one time." }),
    ...keyFields,
  }),
  { id: "KeyCreated", description: "The new key." },
);

export type KeyCreated = z.infer<typeof keyCreatedBody>;

export const keyRevokedBody = documented(z.strictObject({ success: z.boolean() }), {
  id: "KeyRevoked",
  description: "Revoked.",
});
