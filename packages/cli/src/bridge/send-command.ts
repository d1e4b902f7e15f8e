import {
  type Bridge,
  BridgeError,
  type BridgeRequest,
  type BridgeResult,
  createBridge,
  type Delivered,
  type TransferProgress,
} from "@coinslot/bridge";
import { Command } from "commander";
import type { Hash, Hex } from "viem";
import { requireAllowed } from "../allow/require-allowed.ts";
import { UnclearError, UsageError } from "../exit-code.ts";
import { readWallet } from "../read-secret.ts";
import { formatFacts, formatJson, paint, type Terminal } from "../terminal.ts";
import {
  feeOptions,
  isOutsideEvm,
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

type SignedTransfer = Extract<TransferProgress, { transaction: Hex }>;

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
which needs --max-total-fee. With --target-rpc-url it waits for the arrival. Ends with 3 when tokens may
have left: then run the "coinslot bridge track" that it prints, before you send again.

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
      const { signal } = terminal;
      const print = printProgress(terminal);
      let signed: SignedTransfer | undefined;
      const onProgress = (progress: TransferProgress) => {
        if (progress.state === "sending") signed = progress;
        print(progress);
      };
      const parts = { bridge, terminal, request, decimals, options, onProgress };
      const sent = await agreeAndSend(parts).catch((cause: unknown) => {
        const isUnclear = cause instanceof BridgeError && cause.moneyMayHaveMoved;
        if (!isUnclear || signed === undefined) throw cause;
        throw new UnclearError(`${cause.message}. ${howToTrack(signed, options)}`, { cause });
      });
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
        const text = `The tokens have left, and were not seen to arrive: ${why}. ${howToTrack(signed ?? sent, options)}`;
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
  onProgress: (progress: TransferProgress) => void;
}): Promise<BridgeResult> {
  const { bridge, terminal, request, decimals, options, onProgress } = parts;
  const { signal } = terminal;
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

function howToLook({ hash, guid }: BridgeResult, options: SendOptions): string {
  if (isOutsideEvm(options.to)) {
    return `It is LayerZero's message ${guid}: https://layerzeroscan.com/tx/${hash}`;
  }
  return howToTrack({ hash }, options);
}

/** The command that follows a transfer. With its bytes, it sends them again while in no block. */
function howToTrack(
  { hash, transaction }: { hash: Hash; transaction?: Hex },
  { to, oft }: SendOptions,
): string {
  const through = oft === undefined ? "" : ` --oft ${oft}`;
  const bytes = transaction === undefined ? "" : ` --transaction ${transaction}`;
  return `To follow it, with the RPC URLs: coinslot bridge track ${hash} --to ${to}${through}${bytes}`;
}

async function ask(terminal: Terminal): Promise<void> {
  if (terminal.confirm === undefined) {
    throw new UsageError("No terminal to prompt: add --yes to send without a prompt.");
  }
  if (!(await terminal.confirm("Send?"))) throw new UsageError("Nothing was sent.");
}
