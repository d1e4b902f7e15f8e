import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { root } from "../docs/code-block.ts";
import { readComposeFile } from "./compose-file.ts";
import { readStages, textsOf } from "./dockerfile.ts";

const { services } = readComposeFile();
const stages = readStages();
const { prometheus, grafana } = services;

/** Content of a mounted file, by its path in the container. */
function readMounted(service: typeof prometheus, path: string): string {
  const mount = service?.volumes.find((volume) => volume.split(":")[1] === path);
  if (mount === undefined) throw new Error(`Nothing is mounted at ${path}.`);
  return readFileSync(join(root, mount.split(":")[0] ?? ""), "utf8");
}

const configurationSchema = z.object({
  rule_files: z.tuple([z.string()]),
  scrape_configs: z.tuple([
    z.object({
      job_name: z.string(),
      static_configs: z.tuple([z.object({ targets: z.array(z.string()) })]),
    }),
  ]),
});
const configurationText = readMounted(prometheus, "/etc/prometheus/prometheus.yml");
const configuration = configurationSchema.parse(parse(configurationText));
const [job] = configuration.scrape_configs;
const [{ targets }] = job.static_configs;

const provisionedSchema = z.object({
  datasources: z.tuple([
    z.object({ type: z.literal("prometheus"), url: z.string(), isDefault: z.literal(true) }),
  ]),
});
const providersSchema = z.object({
  providers: z.tuple([
    z.object({ type: z.literal("file"), options: z.object({ path: z.string() }) }),
  ]),
});

describe("the profile monitoring", () => {
  it("scrapes each service that has metrics, in either profile, as the job of the rules", () => {
    expect(job.job_name).toBe("coinslot");
    for (const profile of ["devnet", "live"]) {
      const named = Object.entries(services).filter(
        ([, { profiles, entrypoint }]) => profiles.includes(profile) && entrypoint === undefined,
      );
      const scraped = targets.map((target) => {
        const [host = "", port] = target.split(":");
        const found = named.filter(
          ([name, { networks }]) => name === host || networks?.default.aliases.includes(host),
        );
        expect(found, `${target} in ${profile}`).toHaveLength(1);
        const target_ = found[0]?.[1].build?.target ?? "";
        const stage = stages.get(target_);
        expect(stage && textsOf(stage, "EXPOSE"), target).toEqual([port]);
        return target_;
      });
      const withMetrics = named.flatMap(([, { build }]) => {
        const stage = stages.get(build?.target ?? "");
        const health = stage === undefined ? [] : textsOf(stage, "HEALTHCHECK");
        return build !== undefined && health.some((text) => text.includes("/readyz"))
          ? [build.target]
          : [];
      });
      expect(scraped.toSorted()).toEqual(withMetrics.toSorted());
    }
  });

  it("gives Prometheus the rules of docs/operating.md", () => {
    const [file] = configuration.rule_files;
    const mounted = readMounted(prometheus, `/etc/prometheus/${file}`);
    expect(mounted).toBe(readFileSync(join(root, "docker/monitoring/coinslot.rules.yml"), "utf8"));
  });

  it("gives Grafana that Prometheus, and the dashboard", () => {
    const folder = "/etc/grafana/provisioning";
    const source = provisionedSchema.parse(
      parse(readMounted(grafana, `${folder}/datasources/coinslot.yml`)),
    ).datasources[0];
    const url = new URL(source.url);
    expect(services[url.hostname]).toBe(prometheus);
    expect(prometheus?.healthcheck?.test.join(" ")).toContain(`:${url.port}/`);
    const { path } = providersSchema.parse(
      parse(readMounted(grafana, `${folder}/dashboards/coinslot.yml`)),
    ).providers[0].options;
    const home = grafana?.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH ?? "";
    expect(home).toBe(`${path}/${basename(home)}`);
    expect(JSON.parse(readMounted(grafana, home))).toMatchObject({ uid: "coinslot" });
  });

  it("lets visitors of this machine read, has no password, and asks nobody else", () => {
    expect(grafana?.environment).toMatchObject({
      GF_AUTH_ANONYMOUS_ENABLED: "true",
      GF_AUTH_ANONYMOUS_ORG_ROLE: "Viewer",
      GF_AUTH_DISABLE_LOGIN_FORM: "true",
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: "true",
      // A name that was rebound to this machine is redirected.
      GF_SERVER_DOMAIN: "localhost",
      GF_SERVER_ENFORCE_DOMAIN: "true",
      GF_ANALYTICS_REPORTING_ENABLED: "false",
      GF_ANALYTICS_CHECK_FOR_UPDATES: "false",
      GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES: "false",
      GF_PLUGINS_PREINSTALL_DISABLED: "true",
    });
    expect(prometheus?.ports).toEqual([]);
  });

  // The tests above hold without the tool, too: machines of this project need not have it.
  const hasTool = spawnSync("promtool", ["--version"]).status === 0;
  it(`has a configuration that ${hasTool ? "promtool" : "a parser"} reads`, () => {
    expect(() => parse(configurationText)).not.toThrow();
    if (!hasTool) return;
    const folder = mkdtempSync(join(tmpdir(), "coinslot-prometheus-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [file] = configuration.rule_files;
    writeFileSync(join(folder, "prometheus.yml"), configurationText);
    writeFileSync(join(folder, file), readMounted(prometheus, `/etc/prometheus/${file}`));
    const { status, stderr } = spawnSync("promtool", [
      ...["check", "config", join(folder, "prometheus.yml")],
    ]);
    expect(status, String(stderr)).toBe(0);
  });
});
