import { createBridge, type TransferProgress } from "@coinslot/bridge";
import { Command } from "commander";
import { UsageError } from "../exit-code.ts";
import { readWallet } from "../read-secret.ts";
import { formatFacts, formatJson, type Terminal } from "../terminal.ts";
import {
  feeOptions,
  type RequestOptions,
  requestOptions,
  targetRpcUrlOption,
} from "./bridge-options.ts";
import { factsOf } from "./quote-command.ts";
import { tellProgress } from "./tell-progress.ts";

interface SendOptions extends RequestOptions {
  maxBridgeFee: bigint;
  maxTotalFee?: bigint;
  targetRpcUrl?: string[];
  yes?: true;
  json?: true;
}

/** `coinslot bridge send`: quotes, asks, sends, and waits for the arrival where it can be seen. */
export function sendCommand(terminal: Terminal): Command {
  const command = new Command("send")
    .description("send tokens to another chain, from the wallet of the environment")
    .option("--yes", "do not ask before sending")
    .option("--json", "print JSON, amounts in the smallest unit");
  for (const option of [...requestOptions(), ...feeOptions(), targetRpcUrlOption()]) {
    command.addOption(option);
  }
  return command.action(async (options: SendOptions): Promise<void> => {
    const account = readWallet(terminal.env);
    if (account === undefined) {
      throw new UsageError(
        "Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, or name a file with …_FILE.",
      );
    }
    const { rpcUrl, to: targetChain, token, amount, targetRpcUrl, json } = options;
    const { recipient = account.address, oft: oftContractAddress } = options;
    const bridge = createBridge({
      account,
      rpcUrl,
      bridgeMaxFee: options.maxBridgeFee,
      maxTotalFee: options.maxTotalFee,
      targetRpcUrls: targetRpcUrl === undefined ? undefined : { [targetChain]: targetRpcUrl },
    });
    try {
      const request = { targetChain, recipient, token, amount, oftContractAddress };
      const quote = await bridge.quoteBridge(request);
      terminal.err(formatFacts(terminal, { ...factsOf(quote, targetChain), to: recipient }));
      if (!options.yes) await ask(terminal);
      const { signal } = terminal;
      const tell = tellProgress(terminal);
      const onProgress = (progress: TransferProgress) => {
        // Nothing is sent any more once somebody wants to stop; what is sent already is told to its end.
        if (isBeforeSending(progress)) signal.throwIfAborted();
        tell(progress);
      };
      signal.throwIfAborted();
      const sent = await bridge.bridge(request, { onProgress });
      if (targetRpcUrl === undefined) {
        const how = `coinslot bridge track ${sent.hash} --to ${targetChain}`;
        terminal.err(`It is on its way. To see it arrive, with both RPC URLs: ${how}`);
        return terminal.out(json ? formatJson(sent) : sent.hash);
      }
      const { hash } = sent;
      const delivered = await bridge.track({ hash, oftContractAddress, onProgress, signal });
      terminal.out(json ? formatJson({ ...sent, delivered }) : delivered.targetHash);
    } finally {
      bridge.close();
    }
  });
}

/** Whether what is told comes before a transaction is handed to a node. */
function isBeforeSending({ state }: TransferProgress): boolean {
  return state === "approving" || state === "approved" || state === "sending";
}

async function ask(terminal: Terminal): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("There is nobody to ask here: give --yes to send without asking.");
  }
  if (!(await terminal.confirm("Send?"))) throw new UsageError("Nothing was sent.");
}
