import {
  type Bridge,
  BridgeError,
  type BridgeRequest,
  type BridgeResult,
  createBridge,
  type Delivered,
  usdt0Chains,
} from "@coinslot/bridge";
import { Command } from "commander";
import { requireAllowed } from "../allow/require-allowed.ts";
import { UnclearError, UsageError } from "../exit-code.ts";
import { readWallet } from "../read-secret.ts";
import { formatFacts, formatJson, paint, type Terminal } from "../terminal.ts";
import {
  feeOptions,
  type RequestOptions,
  readRequest,
  readTargetUrls,
  requestOptions,
  targetRpcUrlOption,
} from "./bridge-options.ts";
import { printProgress } from "./print-progress.ts";
import { factsOf } from "./quote-command.ts";
import { useBridge } from "./use-bridge.ts";

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
    .option("--yes", "send without a prompt")
    .option("--json", "print JSON, amounts in the smallest unit");
  for (const option of [...requestOptions(), ...feeOptions(), targetRpcUrlOption()]) {
    command.addOption(option);
  }
  command.addHelpText(
    "after",
    `
The wallet comes from WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY. It shows the maximum costs, and
sends nothing that would cost more: then it shows the new figures and asks again, or fails with --yes,
which needs --max-total-fee. With --target-rpc-url it waits for the arrival. Ends with 3 when tokens may have left: then "coinslot bridge track" looks, before you send again.

Example:
  coinslot bridge send --rpc-url https://arb1.arbitrum.io/rpc --to plasma \\
    --token 0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9 --amount 5 --max-bridge-fee 0.001`,
  );
  return command.action(async (options: SendOptions): Promise<void> => {
    const { rpcUrl, maxBridgeFee: bridgeMaxFee, maxTotalFee } = options;
    if (options.yes && maxTotalFee === undefined) {
      throw new UsageError("Give --max-total-fee with --yes: gas has no other bound.");
    }
    const { env } = await requireAllowed(terminal, { mayAsk: options.yes !== true });
    const account = readWallet(env);
    if (account === undefined) {
      throw new UsageError(
        "Set WALLET_SEED_PHRASE or WALLET_PRIVATE_KEY, or name a file with …_FILE.",
      );
    }
    const targetRpcUrls = readTargetUrls(command, options);
    const create = () =>
      createBridge({ account, rpcUrl, bridgeMaxFee, maxTotalFee, targetRpcUrls });
    await useBridge(create, async (bridge) => {
      const { request, decimals } = await readRequest(bridge, options, account.address);
      const sent = await agreeAndSend({ bridge, terminal, request, decimals, options });
      const { signal } = terminal;
      const onProgress = printProgress(terminal);
      const show = (text: string, delivered?: Delivered) =>
        terminal.out(options.json ? formatJson({ ...sent, delivered }) : text);
      if (targetRpcUrls === undefined) {
        terminal.err(`It is on its way. ${howToLook(sent, options)}`);
        return show(sent.hash);
      }
      try {
        const { hash } = sent;
        const { oft: oftContractAddress } = options;
        const delivered = await bridge.track({ hash, oftContractAddress, onProgress, signal });
        show(delivered.targetHash, delivered);
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        const text = `The tokens have left, and were not seen to arrive: ${why}. ${howToLook(sent, options)}`;
        throw new UnclearError(text, { cause });
      }
    });
  });
}

/**
 * Shows the maximum, asks, and sends no more than that. A higher price is shown and asked again.
 */
async function agreeAndSend(parts: {
  bridge: Bridge;
  terminal: Terminal;
  request: BridgeRequest;
  decimals: number;
  options: SendOptions;
}): Promise<BridgeResult> {
  const { bridge, terminal, request, decimals, options } = parts;
  const { signal } = terminal;
  const onProgress = printProgress(terminal);
  while (true) {
    const agreed = await bridge.quoteBridge(request);
    const facts = factsOf(agreed, { targetChain: options.to, decimals });
    terminal.err(formatFacts(terminal, { ...facts, to: request.recipient }));
    if (!options.yes) await ask(terminal);
    try {
      return await bridge.bridge(request, { agreed, onProgress, signal });
    } catch (error) {
      const isChanged = error instanceof BridgeError && error.code === "terms_changed";
      if (!isChanged || options.yes) throw error;
      terminal.err(`${paint(terminal, "yellow", "changed:")} ${error.message}`);
    }
  }
}

function howToLook({ hash, guid }: BridgeResult, { to, oft }: SendOptions): string {
  if (usdt0Chains.find(({ key }) => key === to)?.type !== "evm") {
    return `It is LayerZero's message ${guid}: https://layerzeroscan.com/tx/${hash}`;
  }
  const through = oft === undefined ? "" : ` --oft ${oft}`;
  return `To see it arrive, with both RPC URLs: coinslot bridge track ${hash} --to ${to}${through}`;
}

async function ask(terminal: Terminal): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to send without a prompt.");
  }
  if (!(await terminal.confirm("Send?"))) throw new UsageError("Nothing was sent.");
}
