import { fileURLToPath } from "node:url";
import { startCompiled } from "@coinslot/devnet";

/** The example seller as a program of its own. */
export interface SellerProgram {
  port: number;
  /** Everything that it logged. */
  log(): string;
  /** Ends it as a fault of the machine would. */
  kill(): Promise<void>;
}

const app = fileURLToPath(new URL("../../apps/paid-indexer/", import.meta.url));

/** The program of `startSellerProgram`, for `useProgram`. */
export const sellerProgram = new URL("../../apps/paid-indexer/src/main.ts", import.meta.url);

/**
 * Starts the program with this environment and no other settings; rejects with its output if it
 * does not sell.
 *
 * @param file path of the compiled `sellerProgram`
 */
export async function startSellerProgram(
  file: string,
  env: Record<string, string>,
): Promise<SellerProgram> {
  const program = startCompiled([file], { folder: app, env });
  const [, port] = await program.waitFor(/"url":"http:[^"]+:(\d+)","msg":"Selling"/);
  return { port: Number(port), log: program.printed, kill: program.kill };
}
