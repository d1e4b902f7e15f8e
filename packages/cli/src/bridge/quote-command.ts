import { type BridgeQuote, createBridge, usdt0Chains } from "@coinslot/bridge";
import { formatMoney } from "@coinslot/protocol";
import { Command } from "commander";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import {
  nativeDecimals,
  ownerOf,
  type RequestOptions,
  readRequest,
  requestOptions,
} from "./bridge-options.ts";
import { useBridge } from "./use-bridge.ts";

/** `coinslot bridge quote`: the cost of a transfer. Signs nothing. */
export function quoteCommand(terminal: Terminal): Command {
  const command = new Command("quote")
    .description("print a transfer's costs and its minimum arrival")
    .option("--account <address>", "owner of the tokens; default: the environment's wallet")
    .option("--json", "print JSON, amounts in the smallest unit");
  for (const option of requestOptions()) command.addOption(option);
  command.addHelpText(
    "after",
    `
Example:
  coinslot bridge quote --rpc-url https://arb1.arbitrum.io/rpc --to plasma \\
    --token 0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9 --amount 5 --account 0x90F7…`,
  );
  return command.action(
    async (options: RequestOptions & { account?: string; json?: true }): Promise<void> => {
      const account = ownerOf(terminal, options.account);
      const { rpcUrl, to } = options;
      // Nothing is sent, so no bound is needed.
      const create = () => createBridge({ account, rpcUrl, bridgeMaxFee: 0n });
      await useBridge(create, async (bridge) => {
        const { request, decimals } = await readRequest(bridge, options, account);
        const quote = await bridge.quoteBridge(request);
        const facts = factsOf(quote, { targetChain: to, decimals });
        terminal.out(options.json ? formatJson(quote) : formatFacts(terminal, facts));
      });
    },
  );
}

/** A quote in words. */
export function factsOf(
  quote: BridgeQuote,
  { targetChain, decimals }: { targetChain: string; decimals: number },
): Record<string, string> {
  const source = usdt0Chains.find(({ key }) => key === quote.sourceChain);
  const coin = source?.nativeToken ?? "of the native coin";
  const tokens = (amount: bigint) => formatMoney(amount, decimals);
  const native = (amount: bigint) => `${formatMoney(amount, nativeDecimals)} ${coin}`;
  return {
    send: `${tokens(quote.amountSent)} from ${source?.name ?? quote.sourceChain}`,
    arrives: `at least ${tokens(quote.amountReceived)} on ${targetChain}`,
    "bridge fee": native(quote.bridgeFee),
    gas: `${native(quote.fee)} at most`,
    "in all": `${native(quote.bridgeFee + quote.fee)} at most`,
    through: quote.contract,
  };
}
