import { UsageError } from "../exit-code.ts";

/**
 * Loads the development chain. Its packages are optional, since only this command needs them, and
 * anvil's binary is large. So the import is lazy.
 *
 * @throws UsageError when they are not installed
 */
export async function loadDevnet() {
  try {
    return await import("./local-chain.ts");
  } catch (cause) {
    const isMissing = cause instanceof Error && "code" in cause && cause.code === missingModule;
    if (!isMissing) throw cause;
    throw new UsageError(
      "The local chain needs two packages that are optional, and not installed: npm install @viem/anvil @foundry-rs/anvil",
      { cause },
    );
  }
}

const missingModule = "ERR_MODULE_NOT_FOUND";
