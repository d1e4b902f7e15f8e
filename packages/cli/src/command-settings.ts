import type { Setting } from "@coinslot/hosting/environment";

/** Settings of the commands for people: accounts, and the nodes of the bridge. */
export const commandSettings = [
  {
    name: "WALLET_SEED_PHRASE",
    explanation: "The buyer's account",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "WALLET_PRIVATE_KEY",
    explanation: "The same by its private key",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "SELLER_SEED_PHRASE",
    explanation: "The seller's account",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "SELLER_PRIVATE_KEY",
    explanation: "The same by its private key",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FLOAT_SEED_PHRASE",
    explanation: "The float account, which signs refunds",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FLOAT_PRIVATE_KEY",
    explanation: "The same by its private key",
    isOptional: true,
    isSecret: true,
  },
  { name: "PAY_TO", explanation: "The seller's address", isOptional: true },
  {
    name: "COINSLOT_OPERATOR_URL",
    explanation: "A seller that serves its operator over HTTP, in place of the ledger",
    isOptional: true,
  },
  {
    name: "COINSLOT_OPERATOR_KEY",
    explanation: "Its key",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "BRIDGE_RPC_URL",
    explanation: "Endpoints of the bridge's source chain, separated by commas",
    isOptional: true,
  },
  {
    name: "BRIDGE_TARGET_RPC_URL",
    explanation: "Endpoints of the bridge's target chain, separated by commas",
    isOptional: true,
  },
  {
    name: "INDEXER_URL",
    explanation: "An indexing service, by which the books are compared with the chain",
    isOptional: true,
  },
  { name: "INDEXER_API_KEY", explanation: "Its key", isOptional: true, isSecret: true },
] as const satisfies readonly Setting[];
