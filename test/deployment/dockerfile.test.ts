import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { root } from "../docs/code-block.ts";
import { checkCommand } from "../docs/known-commands.ts";
import { isServedPath } from "../docs/served-paths.ts";
import { environmentOf, readStages, type Stage, textsOf } from "./dockerfile.ts";
import { settingsOf } from "./known-settings.ts";

const stages = readStages();
const build = stages.get("build");
const targets = [...stages.values()].filter(({ base }) => base === "runtime");
const manifestSchema = z.object({
  engines: z.object({ node: z.string() }),
  scripts: z.record(z.string(), z.string()),
  packageManager: z.string(),
});
const manifest = manifestSchema.parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

/** The words of an instruction in its JSON form. */
const wordsOf = (text: string): string[] =>
  z.array(z.string()).parse(JSON.parse(text.slice(text.indexOf("["))));

/** A target's program: the package's folder, and the words after its main file. */
function programOf(stage: Stage): { folder: string; args: string[] } {
  const [copied = ""] = textsOf(stage, "COPY").filter((text) => text.startsWith("--from=build"));
  const folder = /^--from=build (\S+) \/app\/$/.exec(copied)?.[1] ?? "";
  const [command = "[]"] = textsOf(stage, "CMD");
  return { folder, args: wordsOf(command) };
}

const names = z.record(z.string(), z.string()).default({});
const packageSchema = z.object({
  dependencies: names,
  peerDependencies: names,
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean() })).default({}),
});

function readPackage(folder: string): z.infer<typeof packageSchema> {
  return packageSchema.parse(JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")));
}

/** Peers that a package of ours, and those that it depends on, cannot do without. */
function peersBelow(name: string): string[] {
  const { dependencies, peerDependencies, peerDependenciesMeta } = readPackage(
    name.replace("@coinslot/", "packages/"),
  );
  const below = Object.keys(dependencies).filter((each) => each.startsWith("@coinslot/"));
  const own = Object.keys(peerDependencies).filter((each) => !peerDependenciesMeta[each]?.optional);
  return [...own, ...below.flatMap(peersBelow)];
}

describe("the Dockerfile", () => {
  it("has a target for each app", () => {
    expect(targets.map(({ name }) => name).toSorted()).toEqual([
      "console",
      "devnet",
      "facilitator",
      "indexer",
      "paid-indexer",
    ]);
  });

  it("is based on one pinned Node that the project supports", () => {
    const text = readFileSync(join(root, "Dockerfile"), "utf8");
    const [, major, minor] = /^ARG NODE_VERSION=(\d+)\.(\d+)\.\d+-bookworm-slim$/m.exec(text) ?? [];
    expect(manifest.engines.node).toBe(">=20.19");
    expect(Number(major) * 1000 + Number(minor)).toBeGreaterThanOrEqual(20_019);
    const bases = [...stages.values()].map(({ base }) => base);
    expect(new Set(bases)).toEqual(new Set([`node:$\{NODE_VERSION}`, "runtime"]));
  });

  it("copies existing paths, and takes pnpm from package.json", () => {
    expect(manifest.packageManager).toMatch(/^pnpm@[\d.]+\+sha512\./);
    const copied = [...stages.values()]
      .flatMap((stage) => textsOf(stage, "COPY"))
      .filter((text) => !text.startsWith("--from"))
      .flatMap((text) => text.split(" ").slice(0, -1));
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("builds with existing scripts and packages", () => {
    const runs = build ? textsOf(build, "RUN") : [];
    const scripts = runs.flatMap((text) => /pnpm run (\S+)/.exec(text)?.[1] ?? []);
    expect(scripts).toEqual(["build"]);
    expect(Object.keys(manifest.scripts)).toContain("build");
    const deployed = runs.flatMap((text) => {
      const [, name, folder] = /--filter (\S+) --prod .*deploy (\S+)$/.exec(text) ?? [];
      return folder === undefined ? [] : [{ name, folder }];
    });
    const packages = [...new Set(deployed.map(({ name }) => name))];
    expect(packages).toEqual(["@coinslot/cli", "@coinslot/paid-indexer-app"]);
    const folders = deployed.map(({ folder }) => folder);
    for (const stage of targets) expect(folders).toContain(programOf(stage).folder);
  });

  it.each(["packages/cli", "apps/paid-indexer"])(
    "copies %s with the peer dependencies of the packages below it",
    (folder) => {
      // A deployment installs the dependencies of its one package; peers of others are not among
      // them.
      const { dependencies } = readPackage(folder);
      const lacking = Object.entries(dependencies)
        .filter(([, version]) => version.startsWith("workspace:"))
        .flatMap(([name]) => peersBelow(name))
        .filter((peer) => dependencies[peer] === undefined);
      expect([...new Set(lacking)]).toEqual([]);
    },
  );

  it.each(targets.map((stage) => [stage.name, stage] as const))(
    "starts %s from its build, without root, with a health check at its address",
    async (_name, stage) => {
      expect(textsOf(stage, "USER")).toEqual(["node"]);
      expect(textsOf(stage, "ENTRYPOINT").map(wordsOf)).toEqual([["node", "/app/dist/main.js"]]);
      const { folder, args } = programOf(stage);
      const source = folder === "/out/paid-indexer" ? "apps/paid-indexer" : "packages/cli";
      expect(existsSync(join(root, source, "src/main.ts"))).toBe(true);
      const context = { blocks: [], folders: ["."], isKnownVariable: () => true };
      if (source === "packages/cli") {
        const words = ["coinslot", ...args];
        expect(await checkCommand({ line: 1, variables: [], words }, context)).toEqual([]);
      }
      const [port = ""] = textsOf(stage, "EXPOSE");
      const health = textsOf(stage, "HEALTHCHECK").flatMap(wordsOf).at(-1) ?? "";
      if (URL.canParse(health)) {
        expect(new URL(health).port).toBe(port);
        expect(isServedPath(new URL(health).pathname, [])).toBe(true);
        expect([...Object.values(environmentOf(stage)), ...args]).toContain(port);
      } else expect(args).toContain(health.replace(/\/PAY_TO$/, ""));
    },
  );

  it("keeps databases in /data by default, for a setting or its file", () => {
    for (const stage of targets) {
      expect(textsOf(stage, "WORKDIR").at(-1), stage.name).toBe("/data");
      const set = Object.keys(environmentOf(stage));
      const settings = Object.entries(settingsOf).find(([name]) => name === stage.name)?.[1] ?? [];
      const databases = settings.filter(({ defaultValue }) => defaultValue?.startsWith("sqlite:"));
      for (const { name, defaultValue } of databases) {
        expect(defaultValue).toMatch(/^sqlite:\.\//);
        expect(set).not.toContain(name);
      }
    }
  });

  it("puts no secret into a layer", () => {
    const environment = [...stages.values()].flatMap((stage) => Object.keys(environmentOf(stage)));
    expect(environment.filter((name) => /SEED|KEY|SECRET|PASSWORD|TOKEN/.test(name))).toEqual([]);
    const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
    expect(ignored).toEqual(
      expect.arrayContaining(["**/.env", "secrets", ".git", "**/node_modules", "**/*.db"]),
    );
  });
});
