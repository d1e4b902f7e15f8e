import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { readRecording, replayCycle, summarise } from "@coinslot/inspector";
import { Command, InvalidArgumentError } from "commander";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";
import { printable } from "../pay/printable.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";

interface ReplayOptions {
  seller: string;
  /** A list where the command above has taken it: both have an option of this name. */
  rpcUrl?: string | string[];
  cycle?: number;
  json?: true;
}

/** `coinslot inspect replay`: makes recorded cycles anew, on a local chain. */
export function replayCommand(terminal: Terminal, io: Io): Command {
  return new Command("replay")
    .description("make recorded cycles anew on a local chain, and compare the answers")
    .argument("<file>", "a recording of coinslot inspect")
    .option("--seller <url>", "the seller, on this machine", "http://127.0.0.1:4021")
    .option("--rpc-url <url>", "the node of a local chain, such as coinslot devnet")
    .option("--cycle <number>", "one cycle alone", readNumber)
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
The recording holds no signature: a throwaway key signs anew, with the differences that the recorded payment
had to its offer. It asks a seller of this machine, and pays on anvil or hardhat at a loopback address. The
tokens come from the recorded payer's account there.

Ends with 1 when an answer differs from the recorded one.

Example:
  coinslot inspect replay refused.json --rpc-url http://127.0.0.1:8545`,
    )
    .action(async (file: string, _own: ReplayOptions, command: Command): Promise<void> => {
      const options = command.optsWithGlobals<ReplayOptions>();
      const { seller: url, cycle: wanted, json } = options;
      const [rpcUrl] = [options.rpcUrl].flat();
      if (rpcUrl === undefined) throw new UsageError("Missing option: --rpc-url.");
      const { cycles } = await read(resolve(io.folder, file));
      const chosen = cycles.filter(({ id }) => wanted === undefined || id === wanted);
      if (chosen.length === 0) throw new UsageError("The recording has no such cycle.");
      let different = 0;
      for (const cycle of chosen) {
        const { id, method, target, state } = summarise(cycle);
        const report = await replayCycle(cycle, { url, rpcUrl, now: io.now });
        if (!report.isSame) different += 1;
        if (json) {
          terminal.out(formatJson({ id, method, target, state, ...report }));
          continue;
        }
        const rows = report.lines.map(({ about, recorded, now, isSame }) => [
          about,
          printable(recorded),
          printable(now),
          isSame ? paint(terminal, "green", "same") : paint(terminal, "red", "differs"),
        ]);
        terminal.out(`#${id} ${printable(`${method} ${target}`)}, recorded as ${state}`);
        terminal.out(formatTable(terminal, [["", "recorded", "now", ""], ...rows]));
      }
      if (different > 0) throw new Error(`${different} of ${chosen.length} cycles differ.`);
    });
}

async function read(path: string) {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new UsageError(`The recording cannot be read: ${String(error)}`);
  });
  try {
    return readRecording(text);
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message) : error;
  }
}

function readNumber(text: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected the number of a cycle");
}
