import type { Setting } from "../setting.ts";

/** Every setting of the indexing service, in the order of the README. */
export const indexerSettings = [
  {
    name: "INDEXER_CHAINS",
    explanation:
      "Known chains to index, separated by commas: plasma, stable, ethereum, arbitrum and others",
    isOptional: true,
    inFile: "chains[].preset",
  },
  {
    name: "COINSLOT_RPC_URL_<CHAIN_ID>",
    explanation: "RPC endpoints of a chain, separated by commas, the preferred one first",
    isOptional: true,
    isSecret: true,
    inFile: "chains[].rpcUrls",
  },
  {
    name: "COINSLOT_RPC_URL",
    explanation: "The endpoints of the chain in COINSLOT_NETWORK",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "COINSLOT_NETWORK",
    explanation: "The chain of COINSLOT_RPC_URL, such as eip155:9745, which is Plasma",
    isOptional: true,
  },
  {
    name: "INDEXER_RPC_URLS_<CHAIN>",
    explanation:
      "Endpoints for the service alone, by the chain's name; they come before the others",
    isOptional: true,
  },
  {
    name: "INDEXER_START_BLOCK_<CHAIN>",
    explanation: "The first block to index; balances are exact from any block on",
    defaultValue: "0",
    inFile: "chains[].startBlock",
  },
  {
    name: "INDEXER_DATABASE",
    explanation:
      "The database of transfers: sqlite:<file>, or postgres://… for several processes, of which one writes",
    defaultValue: "sqlite:./indexer.db",
    isSecret: true,
    inFile: "database",
  },
  {
    name: "INDEXER_HOST",
    explanation:
      "The address to listen on: 127.0.0.1 for this machine only, 0.0.0.0 for all interfaces",
    defaultValue: "127.0.0.1",
    inFile: "host",
  },
  {
    name: "INDEXER_PORT",
    explanation: "The port to listen on",
    defaultValue: "8080",
    inFile: "port",
  },
  {
    name: "INDEXER_AUTH_STATUS",
    explanation:
      "specified: 401 without a valid key, everywhere. live: as the public deployment of this API, 403 for a missing or wrong key, 401 for an expired one, health and chains open",
    defaultValue: "specified",
    inFile: "authStatus",
  },
  {
    name: "INDEXER_TRUST_PROXY",
    explanation: "Number of trusted proxies in front, for the caller's address",
    defaultValue: "0",
    inFile: "trustProxy",
  },
  {
    name: "INDEXER_LOG_LEVEL",
    explanation: "debug, info, warn, error or silent",
    defaultValue: "info",
    inFile: "logLevel",
  },
  {
    name: "INDEXER_WEBHOOK_URL",
    explanation:
      "Receiver of webhooks about watched addresses, which has the id default; none ends those of the database",
    isOptional: true,
    isSecret: true,
    inFile: "webhooks[].url",
  },
  {
    name: "INDEXER_WEBHOOK_SECRET",
    explanation:
      "Secret that signs its webhooks: whsec_…; during a rotation two, with a comma between",
    isOptional: true,
    isSecret: true,
    inFile: "webhooks[].secrets",
  },
  {
    name: "INDEXER_WEBHOOK_OWNER",
    explanation:
      "Owner of API keys that may change its addresses, replay and test over HTTP; without one, no key may",
    isOptional: true,
    inFile: "webhooks[].owner",
  },
  {
    name: "INDEXER_UNSAFE_PRIVATE_WEBHOOKS",
    explanation: "true: its address may be private, and http; for a receiver of your own network",
    defaultValue: "false",
    inFile: "webhooks[].unsafeAllowPrivateAddresses",
  },
  {
    name: "INDEXER_CONFIG",
    explanation:
      "A YAML or JSON file with settings, other tokens, and chains without a preset, overridden by the environment",
    isOptional: true,
  },
] as const satisfies readonly Setting[];

/** The name of a setting of the indexing service. */
export type IndexerSettingName = (typeof indexerSettings)[number]["name"];
