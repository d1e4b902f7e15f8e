/**
 * Compiles the `contracts/*.sol` of each package. Writes beside them `<name>.generated.ts` for each
 * contract, with its ABI and its creation bytecode. The ABI is a constant, so that viem infers
 * types from it. A contract that only a node's state override places has the bytecode that a
 * deployment would leave.
 *
 *   tsx scripts/compile-contracts.ts            writes the files
 *   tsx scripts/compile-contracts.ts --check    compiles again and compares; exits with 1 if they differ
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import solc from "solc";
import * as z from "zod";

const packages = new URL("../../", import.meta.url);
const outputs: Readonly<Record<string, "bytecode" | "deployedBytecode">> = {
  "devnet/contracts/": "bytecode",
  "facilitator/contracts/": "bytecode",
  "bridge/contracts/": "deployedBytecode",
};
const directories = Object.keys(outputs);

/** Shanghai is the oldest version that all chains we serve have reached. */
const usualVersion = "shanghai";
/**
 * Sources that need a later version: the deployed contract that this one stands for uses EIP-1153.
 */
const laterVersions: Readonly<Record<string, string>> = { "TestBatchSettlement.sol": "cancun" };

const code = z.object({ object: z.string() });

const compilerOutput = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).default([]),
  contracts: z
    .record(
      z.string(),
      z.record(
        z.string(),
        z.object({
          abi: z.array(z.unknown()),
          evm: z.object({ bytecode: code, deployedBytecode: code }),
        }),
      ),
    )
    .default({}),
});

/**
 * Compiles every source of a directory, and returns the text of each generated file by its path.
 * Throws on errors and warnings.
 */
function compileContracts(directory: string): Map<string, string> {
  const versionOf = (source: string) => laterVersions[source] ?? usualVersion;
  const sources = list(directory, ".sol");
  const versions = new Set(sources.map(versionOf));
  return new Map(
    [...versions].flatMap((evmVersion) => [
      ...compileSources(
        directory,
        sources.filter((source) => versionOf(source) === evmVersion),
        evmVersion,
      ),
    ]),
  );
}

function compileSources(
  directory: string,
  sourceNames: readonly string[],
  evmVersion: string,
): Map<string, string> {
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(
      sourceNames.map((name) => [
        name,
        { content: readFileSync(new URL(directory + name, packages), "utf8") },
      ]),
    ),
    settings: {
      evmVersion,
      optimizer: { enabled: true, runs: 200 },
      metadata: { appendCBOR: false, bytecodeHash: "none" },
      outputSelection: {
        "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] },
      },
    },
  };
  const kind = outputs[directory] ?? "bytecode";
  const output = compilerOutput.parse(JSON.parse(solc.compile(JSON.stringify(input))));
  const problems = output.errors.filter(({ severity }) => severity !== "info");
  if (problems.length > 0) {
    throw new Error(problems.map(({ formattedMessage }) => formattedMessage).join("\n"));
  }
  const files = new Map<string, string>();
  for (const [sourceName, contracts] of Object.entries(output.contracts)) {
    const contractName = sourceName.replace(/\.sol$/, "");
    const contract = contracts[contractName];
    if (contract === undefined) {
      throw new Error(`${sourceName} has no contract named ${contractName}`);
    }
    files.set(
      `${directory}${kebabCase(contractName)}.generated.ts`,
      [
        `// Generated from ${sourceName} by scripts/compile-contracts.ts (solc ${solc.version()}). Do not edit.`,
        `export const ${contractName[0]?.toLowerCase()}${contractName.slice(1)} = {`,
        `  abi: ${JSON.stringify(contract.abi)},`,
        `  ${kind}: "0x${contract.evm[kind].object}",`,
        "} as const;",
        "",
      ].join("\n"),
    );
  }
  return files;
}

function kebabCase(name: string): string {
  return name.replace(/(?<=[a-z0-9])[A-Z]/g, "-$&").toLowerCase();
}

function list(directory: string, ending: string): string[] {
  return readdirSync(new URL(directory, packages)).filter((name) => name.endsWith(ending));
}

/**
 * Names what differs between the compiled files and those that are stored: changed, missing, or
 * left over.
 */
function findDifferences(compiled: ReadonlyMap<string, string>): string[] {
  const stored = directories.flatMap((directory) =>
    list(directory, ".generated.ts").map((name) => directory + name),
  );
  const changed = [...compiled].flatMap(([path, text]) => {
    if (!stored.includes(path)) return [`${path} is missing`];
    const same = readFileSync(new URL(path, packages), "utf8") === text;
    return same ? [] : [`${path} differs from what its source compiles to`];
  });
  const leftOver = stored
    .filter((path) => !compiled.has(path))
    .map((path) => `${path} has no source`);
  return [...changed, ...leftOver];
}

const compiled = new Map(directories.flatMap((directory) => [...compileContracts(directory)]));
if (process.argv.includes("--check")) {
  const differences = findDifferences(compiled);
  if (differences.length > 0) {
    console.error(
      `${differences.join("\n")}\nRun \`npm run contracts\` in packages/devnet and commit the result.`,
    );
    process.exitCode = 1;
  } else {
    console.log(`${compiled.size} compiled contracts match their sources.`);
  }
} else {
  for (const [path, text] of compiled) writeFileSync(new URL(path, packages), text);
  console.log(`Wrote ${[...compiled.keys()].join(", ")}.`);
}
