import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { readDocument, root } from "./code-block.ts";
import { readExistingMetrics, readFirstScrape } from "./existing-metrics.ts";
import { readTables } from "./tables.ts";

const folder = join(root, "docker/monitoring");
const rulesFile = z.strictObject({
  groups: z.tuple([
    z.strictObject({
      name: z.literal("coinslot"),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Coinslot[A-Za-z]+$/),
          expr: z.string().min(1),
          for: z
            .string()
            .regex(/^\d+[mh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(["warning", "critical"]) }),
          annotations: z.strictObject({ summary: z.string().min(1), runbook: z.string() }),
        }),
      ),
    }),
  ]),
});
const { rules } = rulesFile.parse(parse(readFileSync(join(folder, "coinslot.rules.yml"), "utf8")))
  .groups[0];

const dashboardFile = z.object({
  panels: z.array(
    z.object({
      id: z.number(),
      title: z.string().min(1),
      gridPos: z.object({ x: z.number(), w: z.number() }),
      targets: z.array(z.object({ refId: z.string(), expr: z.string().min(1) })).default([]),
    }),
  ),
});
const { panels } = dashboardFile.parse(
  JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8")),
);
const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

/** Names of metrics in an expression, without the parts of a histogram. */
function metricsIn(expr: string, types: ReadonlyMap<string, string>): string[] {
  return [...expr.matchAll(/\bcoinslot_\w+/g)].map(([name]) => {
    const base = name.replace(/_(bucket|sum|count)$/, "");
    return types.get(base) === "histogram" ? base : name;
  });
}

/** Words of an expression that stand where a metric does, and are none of ours. */
function foreignMetricsIn(expr: string): string[] {
  const bare = expr.replace(/"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|on|without)\s*\([^)]*\)/g, " ");
  const words = bare.match(/\b[a-z_]\w*(?!\w*\s*\()/g) ?? [];
  const operators = ["or", "and", "unless", "offset", "decimals"];
  return words.filter((word) => !word.startsWith("coinslot_") && !operators.includes(word));
}

const promtool = spawnSync("promtool", ["--version"]).status === 0;

describe("the alert rules", () => {
  it("are exactly the alerts of docs/operating.md, in order", () => {
    const page = readTables(readDocument("docs/operating.md"));
    const alerts = page.find(({ heading }) => heading === "Alert");
    expect(rules.map(({ alert }) => alert)).toEqual(alerts?.names);
  });

  it("name a metric of their sign, and link to where their row does", () => {
    const rows = readDocument("docs/operating.md").split("\n");
    for (const { alert, expr, annotations } of rules) {
      const row = rows.find((line) => line.startsWith(`| \`${alert}\` |`)) ?? "";
      const signs = [...row.matchAll(/`(coinslot_\w+)/g)].map(([, name = ""]) => name);
      expect(
        signs.some((name) => expr.includes(name)),
        alert,
      ).toBe(true);
      const [, target = "#alerts"] = /\]\(([^)]+)\)/.exec(row) ?? [];
      const page = target.startsWith("#") ? `operating.md${target}` : target;
      expect(annotations.runbook, alert).toBe(`docs/${page}`);
    }
  });

  it("the alert rules and the dashboard name metrics that exist, and counters alone where they count", async () => {
    const types = await readExistingMetrics();
    for (const expr of [...rules.map((rule) => rule.expr), ...queries]) {
      expect(metricsIn(expr, types).length, expr).toBeGreaterThan(0);
      expect(
        metricsIn(expr, types).filter((name) => !types.has(name)),
        expr,
      ).toEqual([]);
      expect(
        foreignMetricsIn(expr).filter((name) => name !== "up"),
        expr,
      ).toEqual([]);
      for (const [, name = ""] of expr.matchAll(/\b(?:rate|increase)\((coinslot_\w+)/g)) {
        const [base = ""] = metricsIn(name, types);
        expect(["counter", "histogram"], expr).toContain(types.get(base));
      }
    }
  });

  it("find a counter at 0 before its first event, where that has to alert", async () => {
    const scrape = await readFirstScrape();
    const first = rules.flatMap(({ expr }) => [
      ...expr.matchAll(/increase\((coinslot_\w+)(?:\{([^}]*)\})?\[\w+\]\)+ > 0/g),
    ]);
    expect(first.length).toBeGreaterThan(6);
    for (const [expr, name = "", matchers = ""] of first) {
      const series = scrape.split("\n").filter((line) => line.startsWith(name));
      const labels = [...matchers.matchAll(/(\w+)=~?"([^"]*)"/g)].flatMap(([, label, values]) =>
        (values ?? "").split("|").map((value) => `${label}="${value}"`),
      );
      expect(series.length, expr).toBeGreaterThan(0);
      for (const label of labels) {
        expect(
          series.some((line) => line.includes(label) && line.endsWith(" 0")),
          `${expr}: ${label}`,
        ).toBe(true);
      }
    }
  });
});

it("the dashboard has panels with numbers of their own, within its width", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  expect(queries.length).toBeGreaterThan(20);
});

/**
 * A series that begins with the first refusals, and does not rise: `increase` finds nothing in it.
 */
const firstBurst = {
  rule_files: [join(folder, "coinslot.rules.yml")],
  evaluation_interval: "1m",
  tests: [
    {
      interval: "1m",
      input_series: [
        {
          series: 'coinslot_refusals_total{route="GET /",reason="not_ready",network="",asset=""}',
          values: "_x5 40x30",
        },
        {
          series:
            'coinslot_refusals_total{route="GET /few",reason="not_ready",network="",asset=""}',
          values: "_x5 9x30",
        },
      ],
      promql_expr_test: [
        {
          expr: 'count(ALERTS{alertname="CoinslotRefusing",alertstate="firing"})',
          eval_time: "12m",
          exp_samples: [{ labels: "{}", value: 1 }],
        },
        {
          expr: 'count(ALERTS{alertname="CoinslotRefusing",alertstate="firing"})',
          eval_time: "30m",
          exp_samples: [],
        },
      ],
    },
  ],
};

// The tests above hold without the tool, too: machines of this project need not have it.
it(`${promtool ? "promtool finds" : "without promtool, parentheses show"} no fault in rules and queries`, () => {
  if (promtool) {
    execFileSync("promtool", ["check", "config", join(folder, "prometheus.yml")]);
    const asRules = queries.map((expr, index) => ({
      record: `panel:${index}`,
      // Variables of Grafana.
      expr: expr.replaceAll("$__range", "1d").replaceAll("$decimals", "6"),
    }));
    const scratch = mkdtempSync(join(tmpdir(), "coinslot-rules-"));
    onTestFinished(() => rmSync(scratch, { recursive: true }));
    const file = join(scratch, "dashboard.yml");
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules: asRules }] }));
    execFileSync("promtool", ["check", "rules", file]);
  }
  if (promtool) {
    const scratch = mkdtempSync(join(tmpdir(), "coinslot-rules-"));
    onTestFinished(() => rmSync(scratch, { recursive: true }));
    const file = join(scratch, "tests.yml");
    writeFileSync(file, JSON.stringify(firstBurst));
    execFileSync("promtool", ["test", "rules", file]);
  }
  for (const expr of [...rules.map((rule) => rule.expr), ...queries]) {
    let depth = 0;
    for (const sign of expr.replace(/"[^"]*"/g, "")) {
      if ("([{".includes(sign)) depth += 1;
      if (")]}".includes(sign)) depth -= 1;
      expect(depth, expr).toBeGreaterThanOrEqual(0);
    }
    expect(depth, expr).toBe(0);
  }
});
