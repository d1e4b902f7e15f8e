import { type FileHandle, open, readFile, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { createMutex } from "@coinslot/concurrency";
import * as z from "zod";
import { BridgeError } from "../bridge-error.ts";

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]+$/)]);

const transferSchema = z.object({
  /** Key of the chain. */
  targetChain: z.string(),
  recipient: z.string(),
  /** Of the transaction on the source chain. */
  hash: hex,
  /** The signed transaction: any holder can send it, as it is and once only. */
  transaction: hex,
});
const fileSchema = z.object({ version: z.literal(1), transfers: z.array(transferSchema) });

/** A transfer that may be under way. */
export type RememberedTransfer = z.infer<typeof transferSchema>;
type Route = Pick<RememberedTransfer, "targetChain" | "recipient">;

/** Store of transfers that may be under way: one for each recipient on a target chain. */
export interface TransferMemory {
  /** @throws BridgeError `file_unavailable`, as the others do; then nothing has changed */
  find(route: Route): Promise<RememberedTransfer | undefined>;
  /** Durable once it resolves. Rejects where a transfer to the same recipient is stored already. */
  remember(transfer: RememberedTransfer): Promise<void>;
  forget(transfer: RememberedTransfer): Promise<void>;
}

/** Keeps transfers in a JSON file of its own; without one, for the lifetime of the process. */
export function createTransferMemory(file: string | undefined): TransferMemory {
  const path = file === undefined ? undefined : resolve(file);
  const mutex = createMutex();
  let inMemory: readonly RememberedTransfer[] = [];

  /**
   * Reads the file each time: another top-up may have it, and an operator removes it to give a
   * transfer up.
   */
  async function read(): Promise<readonly RememberedTransfer[]> {
    return path === undefined ? inMemory : readTransfers(path);
  }

  function change(to: (transfers: readonly RememberedTransfer[]) => RememberedTransfer[]) {
    return mutex.run(async () => {
      const transfers = to(await read());
      if (path === undefined) inMemory = transfers;
      else await writeTransfers(path, transfers);
    });
  }

  return {
    find: (route) => mutex.run(async () => (await read()).find((each) => isOn(each, route))),
    remember: (transfer) =>
      change((transfers) => {
        if (!transfers.some((each) => isOn(each, transfer))) return [...transfers, transfer];
        const { targetChain } = transfer;
        throw unavailable(`is used by another top-up, which has sent to ${targetChain} meanwhile`);
      }),
    forget: ({ hash }) => change((transfers) => transfers.filter((each) => each.hash !== hash)),
  };
}

function isOn(transfer: Route, { targetChain, recipient }: Route): boolean {
  return (
    transfer.targetChain === targetChain &&
    transfer.recipient.toLowerCase() === recipient.toLowerCase()
  );
}

async function readTransfers(path: string): Promise<RememberedTransfer[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return [];
    throw unavailable("cannot be read", cause);
  }
  try {
    return fileSchema.parse(JSON.parse(text)).transfers;
  } catch {
    throw unavailable("is malformed: repair it, or remove it if no transfer is in flight");
  }
}

// Atomic replace: a crash at any moment leaves the old file or the new one. The new one is on disk,
// with its name, before anything is sent.
async function writeTransfers(path: string, transfers: RememberedTransfer[]): Promise<void> {
  const temporary = `${path}.tmp`;
  const text = `${JSON.stringify({ version: 1, transfers }, undefined, 2)}\n`;
  try {
    await withFile(temporary, "w", async (handle) => {
      await handle.writeFile(text);
      await handle.sync();
    });
    await rename(temporary, path);
    // Windows has no such call, and journals renames.
    if (process.platform !== "win32") await withFile(dirname(path), "r", (handle) => handle.sync());
  } catch (cause) {
    throw unavailable("cannot be written", cause);
  }
}

async function withFile(
  path: string,
  flags: "r" | "w",
  work: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const handle = await open(path, flags, 0o600);
  try {
    await work(handle);
  } finally {
    await handle.close();
  }
}

function unavailable(fault: string, cause?: unknown): BridgeError {
  return new BridgeError("file_unavailable", `The file of transfers in flight ${fault}`, { cause });
}
