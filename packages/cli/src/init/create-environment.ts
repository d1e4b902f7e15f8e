import { getChainPreset } from "@coinslot/chain";
import {
  type Address,
  chainIdOf,
  findKnownChain,
  isNetwork,
  knownAsset,
  symbolOf,
} from "@coinslot/protocol";
import { english, generateMnemonic, mnemonicToAccount } from "viem/accounts";
import { UsageError } from "../exit-code.ts";

/** A fresh environment, with its public parts. */
export interface CreatedEnvironment {
  /** The text of the .env file, with its secrets. */
  text: string;
  relayer: Address;
  seller: Address;
  buyer: Address;
  /** Symbol of the coin that pays for gas. */
  coin: string;
  /** Symbol of the token that pays for requests. */
  token: string;
  /** True if nothing is left to be filled in. */
  isComplete: boolean;
}

/**
 * Draws three seeds, each of 128 random bits, so that no key of one role opens another role's
 * account.
 */
export function createEnvironment(network: string): CreatedEnvironment {
  if (!isNetwork(network)) throw new UsageError("--network must be a network such as eip155:9745.");
  const chainId = chainIdOf(network);
  const { name, nativeCurrency } = getChainPreset(chainId);
  const rpcUrl = findKnownChain(network)?.publicRpcUrl ?? "";
  const token = knownAsset(network);
  const relayer = drawAccount();
  const seller = drawAccount();
  const buyer = drawAccount();
  return {
    text: `# Written by coinslot init. Keep it secret, keep a copy, never commit it.

# Where requests are sold: a network, its RPC endpoints (separated by commas), and where payments
# are recorded: a file, or postgres://... for several processes.
COINSLOT_NETWORK=${network}
COINSLOT_RPC_URL=${rpcUrl}
COINSLOT_LEDGER=sqlite:./coinslot.db

# The relayer's account pays for gas on ${name}.
FACILITATOR_SEED_PHRASE="${relayer.seed}"

# Sellers are paid here. Selling needs the address alone: keep the seed off the server.
PAY_TO=${seller.address}
SELLER_SEED_PHRASE="${seller.seed}"

# The buyer's account pays for requests: coinslot pay, coinslot bridge.
WALLET_SEED_PHRASE="${buyer.seed}"
`,
    relayer: relayer.address,
    seller: seller.address,
    buyer: buyer.address,
    coin: nativeCurrency.symbol,
    token: token === undefined ? "of the token" : symbolOf(token),
    isComplete: rpcUrl !== "",
  };
}

function drawAccount(): { seed: string; address: Address } {
  const seed = generateMnemonic(english);
  return { seed, address: mnemonicToAccount(seed).address };
}
