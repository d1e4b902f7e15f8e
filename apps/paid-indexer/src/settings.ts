import type { Setting } from "@coinslot/hosting";

/** Every setting, in the order of filling them in. */
export const settings = [
  {
    name: "COINSLOT_NETWORK",
    explanation:
      "The chain on which buyers pay, such as eip155:9745 (Plasma) or eip155:8453 (Base)",
  },
  {
    name: "COINSLOT_RPC_URL",
    explanation: "JSON-RPC endpoints of that chain, separated by commas, the preferred one first",
    isSecret: true,
  },
  {
    name: "PAY_TO",
    explanation: "The address that receives the money; its key is not needed here",
  },
  {
    name: "FACILITATOR_SEED_PHRASE",
    explanation: "The account that pays the gas of settlements, of another seed than the seller's",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_PRIVATE_KEY",
    explanation: "The same by its private key; one of the two has to be set",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "COINSLOT_LEDGER",
    explanation: "The database of payments: sqlite:<file>, or postgres://… for several processes",
    defaultValue: "sqlite:./coinslot.db",
    isSecret: true,
  },
  {
    name: "COINSLOT_PUBLIC_URL",
    explanation:
      "The address under which buyers reach this service behind a proxy: offers name it. By default, that of each request",
    isOptional: true,
  },
  {
    name: "PAID_INDEXER_PRICE",
    explanation: "Price of a request, and of each item of a batch",
    defaultValue: "$0.001",
  },
  {
    name: "INDEXER_URL",
    explanation: "URL of a remote indexing service; default: one in this process",
    isOptional: true,
  },
  {
    name: "INDEXER_API_KEY",
    explanation:
      "The key of that service, with limits that are raised for all your buyers together",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "INDEXER_CHAINS",
    explanation: "In this process: the chains to index, separated by commas, such as plasma,stable",
    isOptional: true,
  },
  {
    name: "INDEXER_RPC_URLS_<CHAIN>",
    explanation:
      "In this process: RPC endpoints of an indexed chain, separated by commas; by default those of COINSLOT_RPC_URL, or of COINSLOT_RPC_URL_<chain id>",
    isOptional: true,
  },
  {
    name: "INDEXER_START_BLOCK_<CHAIN>",
    explanation: "In this process: the first block to index",
    defaultValue: "0",
  },
  {
    name: "INDEXER_DATABASE",
    explanation: "In this process: the database of transfers, sqlite:<file> or postgres://…",
    defaultValue: "sqlite:./indexer.db",
    isSecret: true,
  },
  {
    name: "INDEXER_CONFIG",
    explanation: "In this process: a YAML or JSON file that describes further chains and tokens",
    isOptional: true,
  },
  {
    name: "PAID_INDEXER_HOST",
    explanation:
      "The address to listen on: 127.0.0.1 for this machine only, 0.0.0.0 for all interfaces",
    defaultValue: "127.0.0.1",
  },
  {
    name: "PAID_INDEXER_PORT",
    explanation: "The port to listen on",
    defaultValue: "4021",
  },
  {
    name: "PAID_INDEXER_TRUST_PROXY",
    explanation: "Number of trusted proxies in front, for host, protocol and caller",
    defaultValue: "0",
  },
  {
    name: "PAID_INDEXER_LOG_LEVEL",
    explanation: "Log level: debug, info, warn, error or silent",
    defaultValue: "info",
  },
] as const satisfies readonly Setting[];

/** The name of a setting. */
export type SettingName = (typeof settings)[number]["name"];
