import { existsSync } from "node:fs";
import { createRequire } from "node:module";

/**
 * Path of the native anvil binary for this machine. It is a file of a platform package, an optional
 * dependency of `@foundry-rs/anvil`. Starting it without that package's Node wrapper saves a
 * process.
 *
 * @throws if there is none for this platform, or it was not installed
 */
export function anvilBinary(): string {
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const platformPackage = `@foundry-rs/anvil-${process.platform}-${architecture}`;
  const require = createRequire(import.meta.url);
  try {
    const fromAnvil = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
    const binary = fromAnvil.resolve(`${platformPackage}/bin/anvil`);
    if (existsSync(binary)) return binary;
  } catch (cause) {
    throw missing(platformPackage, cause);
  }
  throw missing(platformPackage);
}

function missing(platformPackage: string, cause?: unknown): Error {
  return new Error(
    `The local chain needs anvil, and the package with its binary, ${platformPackage}, is not installed. ` +
      "Install again with optional dependencies. Binaries exist for Linux and macOS on x64 and arm64.",
    { cause },
  );
}
