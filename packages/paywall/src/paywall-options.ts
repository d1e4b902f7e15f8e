import { ConfigurationError, isNetwork } from "@coinslot/protocol";
import * as z from "zod";
import { english } from "./texts/english.ts";
import type { Texts } from "./texts/texts.ts";

const httpUrl = z.url({ protocol: /^https?$/ });
/**
 * A file of the seller's own origin, or an image in the page itself: the policy admits no other.
 */
const image = z
  .string()
  .max(8_192)
  .regex(
    /^(?:\/(?!\/)[^\s"'<>\\]*|data:image\/[a-z+.-]+[;,][\x20-\x7e]*)$/i,
    "must be a path that begins with one slash, or a data: URL of an image",
  );
const colour = z.string().regex(/^#[0-9a-f]{6}$/i, "must be a colour such as #4a45d6");
const textNames = z.enum(Object.keys(english) as [keyof Texts, ...(keyof Texts)[]]);

const chain = z.strictObject({
  /** Name for people. */
  name: z.string().min(1).max(64),
  rpcUrls: z.array(httpUrl).min(1),
  nativeCurrency: z.strictObject({
    name: z.string().min(1).max(32),
    symbol: z.string().min(1).max(11),
    decimals: z.literal(18),
  }),
  /** Shows a transaction under `/tx/<hash>`. */
  explorer: httpUrl.optional(),
});

const optionsSchema = z.strictObject({
  name: z.string().min(1).max(80).optional(),
  logo: image.optional(),
  accent: z.union([colour, z.strictObject({ light: colour, dark: colour })]).optional(),
  language: z.enum(["en", "de", "zh", "es"]).optional(),
  texts: z.partialRecord(textNames, z.string().max(500)).optional(),
  chains: z
    .record(z.string().refine(isNetwork, "must be a network such as eip155:9745"), chain)
    .optional(),
});

/** The parsed theme of a seller. */
export type PaywallSettings = z.infer<typeof optionsSchema>;

/** Theme of a seller's page. All members are optional. */
export interface PaywallOptions {
  /** Name of the seller. */
  name?: string | undefined;
  /** Its logo: a path of the same origin, such as `/logo.svg`, or a `data:` URL of an image. */
  logo?: string | undefined;
  /** Colour of buttons and links, such as `#4a45d6`; one for light and dark, or one for each. */
  accent?: string | { light: string; dark: string } | undefined;
  /** Language of all pages. Default: by `Accept-Language`. */
  language?: "en" | "de" | "zh" | "es" | undefined;
  /** Texts in place of ours, in every language. */
  texts?: Partial<Texts> | undefined;
  /**
   * Facts of networks by their CAIP-2 name. They are for wallets that do not know the network, and
   * for the link to a transaction. Known chains have theirs.
   */
  chains?:
    | Readonly<
        Record<
          string,
          {
            name: string;
            rpcUrls: string[];
            nativeCurrency: { name: string; symbol: string; decimals: 18 };
            explorer?: string | undefined;
          }
        >
      >
    | undefined;
}

/** @throws ConfigurationError with all problems */
export function readPaywallOptions(options: PaywallOptions): PaywallSettings {
  const read = optionsSchema.safeParse(options);
  if (read.success) return read.data;
  const problems = read.error.issues.map(
    ({ path, message }) => `${path.map(String).join(".") || "options"}: ${message}`,
  );
  throw new ConfigurationError("The paywall", problems);
}
