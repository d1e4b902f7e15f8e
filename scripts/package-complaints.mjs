// Faults of a tarball, by publint and attw. They run in this process: the command of attw took
// nine seconds of a processor for a package, and this takes half a second.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { problemAffectsResolutionKind, problemKindInfo } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

/** The packages are ES modules: `require()` of old resolvers is not promised. */
const promised = ["node16-esm", "bundler"];

/**
 * @param {string} tarball path
 * @returns {Promise<string[]>} one line for each fault
 */
export async function packageComplaints(tarball) {
  const data = readFileSync(tarball);
  const [linted, typed] = [await lint(data), await checkTypes(data)];
  return [...linted, ...typed].map((complaint) => `${basename(tarball)}: ${complaint}`);
}

async function lint({ buffer, byteOffset, byteLength }) {
  const tarball = buffer.slice(byteOffset, byteOffset + byteLength);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
  return messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`);
}

async function checkTypes(data) {
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(data)));
  if (!analysis.types) return ["attw: has no types"];
  return promised.flatMap((resolution) =>
    analysis.problems
      .filter((problem) => problemAffectsResolutionKind(problem, resolution, analysis))
      .map(({ kind }) => `attw: ${resolution}: ${problemKindInfo[kind].title}`),
  );
}
