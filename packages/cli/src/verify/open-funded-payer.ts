import { createRpcPool } from "@coinslot/chain";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { isSameAddress } from "@coinslot/protocol";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { UsageError } from "../exit-code.ts";
import { formatPrice } from "../pay/format-price.ts";
import type { SpendableToken } from "../pay/spendable-tokens.ts";
import { readWallet } from "../read-secret.ts";
import { formatFacts, type Terminal } from "../terminal.ts";
import { fundOnLocalChain, isLocalChain } from "./local-chain.ts";
import type { Plan } from "./make-plan.ts";
import { type ChainRecord, openChain } from "./open-chain.ts";
import type { Target } from "./read-target.ts";

/** The account that pays in a run, and the chain that records it. */
export interface FundedPayer {
  account: LocalAccount;
  chain: ChainRecord;
  close(): void;
}

/**
 * Opens the account that pays: a throwaway one on a local chain, or the wallet after consent.
 *
 * @throws UsageError for a chain that is not local, without `--real-money`
 * @throws UsageError for a wallet that is missing, poor or the seller's, and for a no
 */
export async function openFundedPayer(options: {
  terminal: Terminal;
  target: Target;
  network: ConfiguredNetwork;
  token: SpendableToken;
  plan: Plan;
  isRealMoney: boolean;
  isSilent: boolean;
  timeoutMs: number;
}): Promise<FundedPayer> {
  const { terminal, network, token, plan, isRealMoney, timeoutMs } = options;
  const { chainId, rpcUrls } = network;
  const wallet = readWallet(terminal.env);
  if (wallet === undefined) {
    throw new UsageError(
      "Set WALLET_PRIVATE_KEY or WALLET_SEED_PHRASE: the account that holds the tokens. On a chain of coinslot devnet it is the one that it prints.",
    );
  }
  const pool = createRpcPool({ chainId, rpcUrls });
  try {
    const chain = openChain(pool, { timeoutMs, signal: terminal.signal });
    const priceOf = (amount: bigint) =>
      formatPrice({ ...token, asset: token.address, amount: `${amount}` }, [token]);
    if (!isRealMoney && !(await isLocalChain(network, pool))) {
      throw new UsageError(
        "COINSLOT_RPC_URL is no development chain of this machine. Start one by coinslot devnet, for the seller and this command, or add --real-money to pay from the wallet, or --unpaid to look at the offers alone.",
      );
    }
    // On a local chain a throwaway account pays, which is no recipient.
    const recipients = [...plan.terms.values()].map(({ payTo }) => payTo);
    if (isRealMoney && recipients.some((payTo) => isSameAddress(payTo, wallet.address))) {
      throw new UsageError(
        `${wallet.address} is the recipient of the payments: set the wallet of another account.`,
      );
    }
    if ((await chain.balanceOf(token.address, wallet.address)) < plan.balance) {
      throw new UsageError(
        `${wallet.address} holds less than ${priceOf(plan.balance)}, which all checks need.`,
      );
    }
    if (isRealMoney) {
      await confirmPlan({ ...options, price: priceOf(plan.total), payer: wallet.address });
      return { account: wallet, chain, close: () => pool.close() };
    }
    const account = privateKeyToAccount(generatePrivateKey());
    const { address } = account;
    const transfer = {
      token: token.address,
      from: wallet.address,
      to: address,
      amount: plan.balance,
    };
    await fundOnLocalChain(pool, transfer);
    if (!(await chain.untilHeld(token.address, address, plan.balance))) {
      throw new Error("The local chain does not mine: the throwaway account got no tokens.");
    }
    return { account, chain, close: () => pool.close() };
  } catch (error) {
    pool.close();
    throw error;
  }
}

async function confirmPlan(shown: {
  terminal: Terminal;
  target: Target;
  network: ConfiguredNetwork;
  plan: Plan;
  isSilent: boolean;
  price: string;
  payer: string;
}): Promise<void> {
  const { terminal, target, network, plan, isSilent, price, payer } = shown;
  const recipients = new Set([...plan.terms.values()].map(({ payTo }) => payTo));
  terminal.err(
    formatFacts(terminal, {
      verifies: `${target.request.method} ${target.url.href}`,
      payments: `at most ${plan.count}`,
      costs: `at most ${price} in all, on ${network.name} (${network.network})`,
      to: [...recipients].join(", "),
      from: payer,
    }),
  );
  if (isSilent) return;
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to pay without a prompt.");
  }
  if (!(await terminal.confirm("Pay?"))) throw new UsageError("Nothing was paid.");
}
