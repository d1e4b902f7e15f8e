import { expect, it } from "vitest";
import { readExampleVariables } from "../deployment/env-example.ts";
import { findDocuments, readDocument } from "./code-block.ts";

const variable = /process\.env\.([A-Z][A-Z0-9_]*)|\bexport ((?:[A-Z][A-Z0-9_]*=\S* ?)+)/g;

/** Names of the reader, or of other programs. */
const foreign = new Set([
  "API_KEY",
  "FACILITATOR_KEY",
  "FACILITATOR_URL",
  "MPP_SECRET",
  "PRIVATE_KEY",
]);

it("every example uses variable names of .env.example", () => {
  const explained = new Set(readExampleVariables().map(({ name }) => name));
  const unknown = findDocuments().flatMap((document) => {
    const found = [...readDocument(document).matchAll(variable)].flatMap(
      ([, read = "", exported = ""]) => [
        read,
        ...exported.split(" ").map((each) => each.split("=")[0] ?? ""),
      ],
    );
    const names = found.filter((name) => name !== "" && !foreign.has(name));
    return names
      .filter((name) => !explained.has(name.replace(/_\d+$/, "_988").replace(/_FILE$/, "")))
      .map((name) => `${document}: ${name}`);
  });
  expect([...new Set(unknown)]).toEqual([]);
});
