import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** The example seller as a program of its own. */
export interface SellerProgram {
  port: number;
  /** Everything that it logged. */
  log(): string;
  /** Ends it as a fault of the machine would. */
  kill(): Promise<void>;
}

const app = fileURLToPath(new URL("../../apps/paid-indexer/", import.meta.url));

/** Starts the program with this environment and no other settings; rejects with what it says if it does not sell. */
export async function startSellerProgram(env: Record<string, string>): Promise<SellerProgram> {
  const child = spawn(process.execPath, ["--import", "tsx", "--conditions=source", "src/main.ts"], {
    cwd: app,
    env: { PATH: process.env.PATH, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let log = "";
  const port = await new Promise<number>((resolve, reject) => {
    const listen = (text: Buffer) => {
      log += text;
      const [, found] = /"url":"http:[^"]+:(\d+)","msg":"Selling"/.exec(log) ?? [];
      if (found !== undefined) resolve(Number(found));
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    void exited.then(() => reject(new Error(`The seller ended:\n${log}`)));
  });
  return {
    port,
    log: () => log,
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
