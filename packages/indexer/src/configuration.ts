import { getChainPreset } from "@coinslot/chain";
import type { Address } from "viem";
import * as z from "zod";
import { IndexerConfigurationError } from "./configuration-error.ts";
import {
  type IndexerReceiver,
  readIndexerReceivers,
  webhookSchema,
} from "./webhooks/webhook-options.ts";

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "must be lowercase letters, digits, - and _")
  // Names of the API's own paths.
  .refine(
    (text) => !["batch", "blockchains", "chains", "health", "keys", "webhooks"].includes(text),
    {
      error: "is a reserved word of the API",
    },
  );

const address = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hex digits")
  .transform((text): Address => `0x${text.slice(2).toLowerCase()}`);

const httpUrl = z.string().refine((text) => /^https?:$/.test(protocolOf(text)), {
  error: "must be a URL that begins with http:// or https://",
});

const tokenSchema = z.strictObject({
  /** In paths and answers, such as `usdt`. */
  name,
  address,
  /** The first block to index: that of the token's deployment, or any later one. Default 0. */
  startBlock: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .default(0),
  decimals: z.int().min(0).max(255),
});

const chainSchema = z.strictObject({
  /** In paths and answers, such as `plasma`. */
  name,
  chainId: z.int().positive(),
  /** In order of preference. */
  rpcUrls: z.array(httpUrl).min(1, "names no RPC URL"),
  tokens: z.array(tokenSchema).min(1, "names no token"),
  /** Finality rule. Default: the known rule of the chain, else 64 blocks deep. */
  finality: z
    .strictObject({
      /** Ask for the block tagged `finalized`. */
      finalizedTag: z.boolean(),
      /** Without the tag: number of blocks that have to be on top. */
      depth: z.int().min(1).max(10_000),
    })
    .partial()
    .optional(),
  /** Interval between polls for a new block. Default: a value that suits the chain. */
  pollIntervalMs: z.int().min(10).max(60_000).optional(),
  /**
   * Time without a new block until the chain is degraded; after five times as long it is unhealthy.
   * Default: 20 block times, at least 30 s; never where blocks come on demand.
   */
  staleAfterMs: z.int().positive().optional(),
  /** The widest range to ask for. Default 10,000 blocks. */
  maxBlocksPerRequest: z.int().positive().default(10_000),
  /** Target number of transfers per request for a range. Default 4,000. */
  transfersPerRequest: z.int().positive().default(4_000),
  /** Ranges under way at a time. Default 2. */
  requestsInFlight: z.int().min(1).max(32).default(2),
  /** Limit of RPC calls per second and endpoint. Default: none. */
  callsPerSecond: z.number().positive().optional(),
  /** Timeout of one attempt at one endpoint. Default 20 s. */
  requestTimeoutMs: z.int().positive().default(20_000),
  /**
   * Delay between the first and the second reading of a range; until the second nothing in it is
   * final. All endpoints have to name another final block for the same time before it is believed.
   * Default 10 s.
   */
  verifyAfterMs: z.int().min(10).max(3_600_000).default(10_000),
  /**
   * Maximum number of verified blocks that a rewind takes back without a command, where the chain
   * has replaced them. Default 1,000; 0: none.
   */
  maxRewindBlocks: z.int().min(0).max(10_000_000).default(1_000),
});

const spotCheckSchema = z.strictObject({
  /** Default: one minute. */
  everyMs: z.int().positive().default(60_000),
  /** Number of addresses compared each time. Default 5. */
  addresses: z.int().min(1).max(100).default(5),
});

const optionsSchema = z.strictObject({
  chains: z.array(chainSchema).min(1, "names no chain"),
  /** `sqlite:./file.db` or `postgres://…`. Default `sqlite:./indexer.db`. */
  database: z
    .string()
    .regex(/^(sqlite:.|postgres(ql)?:\/\/)/, "must begin with sqlite: or postgres://")
    .default("sqlite:./indexer.db"),
  /**
   * Time after the writer's death until another process takes over, on PostgreSQL. Default 15 s.
   */
  leaseMs: z.int().min(200).default(15_000),
  /** Compares some balances with the chain now and then. Default: never. */
  spotCheck: spotCheckSchema.optional(),
  /**
   * Receivers of webhooks about watched addresses, which this process delivers, too. Default: this
   * process neither decides which there are nor delivers.
   */
  webhooks: z.array(webhookSchema).optional(),
});

/** A chain to follow. */
export type ChainOptions = z.input<typeof chainSchema>;
export type TokenOptions = z.input<typeof tokenSchema>;
export type IndexerConfigurationInput = z.input<typeof optionsSchema>;

export type IndexerConfiguration = Omit<z.output<typeof optionsSchema>, "chains" | "webhooks"> & {
  chains: ChainConfiguration[];
  webhooks: readonly IndexerReceiver[] | undefined;
};
export type ChainConfiguration = Omit<
  z.output<typeof chainSchema>,
  "finality" | "pollIntervalMs" | "staleAfterMs"
> & {
  finality: { finalizedTag: boolean; depth: number };
  pollIntervalMs: number;
  /** Infinite where blocks come on demand. */
  staleAfterMs: number;
};

/**
 * Checks a configuration and fills in the defaults. Throws one `IndexerConfigurationError` with all
 * its problems.
 */
export function readConfiguration(input: unknown): IndexerConfiguration {
  const parsed = optionsSchema.safeParse(input);
  if (!parsed.success) {
    throw new IndexerConfigurationError(
      parsed.error.issues.map(({ path, message }) =>
        path.length === 0 ? message : `${z.core.toDotPath(path)}: ${message}`,
      ),
    );
  }
  const webhooks = readIndexerReceivers(parsed.data.webhooks);
  const problems = [...findDuplicates(parsed.data), ...webhooks.problems];
  if (problems.length > 0) throw new IndexerConfigurationError(problems);
  return {
    ...parsed.data,
    chains: parsed.data.chains.map(withChainDefaults),
    webhooks: webhooks.receivers,
  };
}

function findDuplicates({ chains }: z.output<typeof optionsSchema>): string[] {
  const twice = (kind: string, values: readonly (string | number)[]) =>
    [...new Set(values.filter((value, index) => values.indexOf(value) !== index))].map(
      (value) => `${kind} ${value} is listed twice`,
    );
  return [
    ...twice(
      "chains: name",
      chains.map((chain) => chain.name),
    ),
    ...twice(
      "chains: chain id",
      chains.map((chain) => chain.chainId),
    ),
    ...chains.flatMap(({ name, tokens }) => [
      ...twice(
        `tokens of ${name}: name`,
        tokens.map((token) => token.name),
      ),
      ...twice(
        `tokens of ${name}: address`,
        tokens.map((token) => token.address),
      ),
    ]),
  ];
}

function withChainDefaults(chain: z.output<typeof chainSchema>): ChainConfiguration {
  const preset = getChainPreset(chain.chainId);
  const isKnown = preset.blockTimeMs !== undefined || preset.chainId === 31337;
  const blockTimeMs = preset.blockTimeMs ?? (isKnown ? Number.POSITIVE_INFINITY : 15_000);
  return {
    ...chain,
    finality: {
      // A configured depth takes precedence over the preset's tag.
      finalizedTag:
        chain.finality?.finalizedTag ??
        (chain.finality?.depth === undefined && preset.finality.finalizedTag),
      depth: chain.finality?.depth ?? preset.finality.depth,
    },
    pollIntervalMs: chain.pollIntervalMs ?? preset.pollIntervalMs,
    staleAfterMs: chain.staleAfterMs ?? Math.max(30_000, 20 * blockTimeMs),
  };
}

function protocolOf(text: string): string {
  return URL.canParse(text) ? new URL(text).protocol : "";
}
