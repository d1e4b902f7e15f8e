import { fileURLToPath } from "node:url";
import { startSource } from "@coinslot/devnet";

/** The example seller as a program of its own. */
export interface SellerProgram {
  port: number;
  /** Everything that it logged. */
  log(): string;
  /** Ends it as a fault of the machine would. */
  kill(): Promise<void>;
}

const app = fileURLToPath(new URL("../../apps/paid-indexer/", import.meta.url));

/**
 * Starts the program with this environment and no other settings; rejects with its output if it
 * does not sell.
 */
export async function startSellerProgram(env: Record<string, string>): Promise<SellerProgram> {
  const program = startSource(["src/main.ts"], { folder: app, env });
  const [, port] = await program.waitFor(/"url":"http:[^"]+:(\d+)","msg":"Selling"/);
  return { port: Number(port), log: program.printed, kill: program.kill };
}
