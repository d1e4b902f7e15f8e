import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  readFacilitatorServiceConfiguration,
  readIndexerServiceConfiguration,
} from "@coinslot/hosting";
import { readConfiguration } from "@coinslot/paid-indexer-app";
import { afterAll, describe, expect, it } from "vitest";
import { type ComposeService, readComposeFile } from "./compose-file.ts";
import { environmentOf, readStages } from "./dockerfile.ts";

const folder = mkdtempSync(join(tmpdir(), "coinslot-compose-"));
afterAll(() => rmSync(folder, { recursive: true }));

const key = "77".repeat(32);
/** The files' content, from a person or from another container. */
const contents: Readonly<Record<string, string>> = {
  "database-url": "postgres://coinslot:password@postgres/coinslot",
  "facilitator-keys": `shop:sha256:${key}`,
  "facilitator-seed-phrase": `${"test ".repeat(11)}junk`,
  "indexer-api-key": "csk_devnetpublic_everybody-knows-this-key-use-it-nowhere-else",
  FACILITATOR_PRIVATE_KEY: `0x${key}`,
};

type Environment = Record<string, string>;
const readers: Readonly<Record<string, (env: Environment) => unknown>> = {
  facilitator: (env) => readFacilitatorServiceConfiguration({ env }),
  indexer: (env) => readIndexerServiceConfiguration({ env: { ...env } }),
  "paid-indexer": readConfiguration,
};

const stages = readStages();
const started = Object.entries(readComposeFile().services).filter(
  ([, { build, entrypoint }]) => readers[build?.target ?? ""] && entrypoint === undefined,
);

/** A program's environment: the image's, then the service's, with an .env that has only PAY_TO. */
function environmentIn({ build, environment }: ComposeService): Environment {
  const stage = stages.get(build?.target ?? "");
  const filled = Object.entries(environment).map(([name, text]) => {
    const value = text.replace(/\$\{\w+:-([^}]*)\}/, "$1").replace("$$", "$");
    if (name === "PAY_TO") return [name, value || "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"];
    return [name, name.endsWith("_FILE") ? fileLike(value) : value];
  });
  return { ...(stage && environmentOf(stage)), ...Object.fromEntries(filled) };
}

function fileLike(path: string): string {
  const name = basename(path);
  writeFileSync(join(folder, name), `${contents[name]}\n`);
  return join(folder, name);
}

describe("the environment of docker-compose.yml over that of the image", () => {
  it.each(started)("is a valid configuration of %s", (_name, service) => {
    const read = readers[service.build?.target ?? ""];
    const configuration = JSON.stringify(read?.(environmentIn(service)), (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
    expect(configuration).toContain('"host":"0.0.0.0"');
    // None of them continues on a file of its own beside the database.
    expect(configuration).not.toContain("sqlite:");
  });
});
