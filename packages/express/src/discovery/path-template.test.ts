import supertest from "supertest";
import { describe, expect, it } from "vitest";
import type { PathDialect } from "../routes/path-dialect.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { belowMount, readTemplate, templateOf, writeTemplate } from "./path-template.ts";

const written = (path: string, dialect: PathDialect) => {
  const template = templateOf(path, dialect);
  return template && writeTemplate(template);
};

const templates: readonly [
  path: string,
  express4: string | undefined,
  express5: string | undefined,
][] = [
  ["/", "/", "/"],
  ["/weather", "/weather", "/weather"],
  ["/weather/:city/:day", "/weather/{city}/{day}", "/weather/{city}/{day}"],
  ["/:from-:to.json", "/{from}-{to}.json", "/{from}-{to}.json"],
  ["/a%20b", "/a%20b", "/a%20b"],
  ["/files/*", "/files/{rest}", undefined],
  ["/files/*rest", undefined, "/files/{rest}"],
  ["/files/*rest/raw", undefined, "/files/{rest}/raw"],
  ["/:id(\\d+)", undefined, undefined],
  ["/:id?", undefined, undefined],
  ["/a{/:id}", undefined, undefined],
  ["/ab+c", undefined, undefined],
  ["/a\\*b", undefined, undefined],
  ["/:größe", undefined, undefined],
  ["/:id/:id", undefined, undefined],
  ["/:rest/*", undefined, undefined],
  ["*", undefined, undefined],
];

describe("the template of a route's path", () => {
  it.each(templates)(
    "the template of %s is %s in Express 4, and %s in Express 5",
    (path, four, five) => {
      expect([written(path, "Express 4"), written(path, "Express 5")]).toEqual([four, five]);
    },
  );

  it.each(
    expressVersions.flatMap(({ name, express }, index) =>
      templates.flatMap(([path, ...expected]) => {
        const template = expected[index];
        return template === undefined ? [] : [{ name, express, path, template }];
      }),
    ),
  )("$template leads to the handler of $path in $name", async ({ express, path, template }) => {
    const app = express();
    app.get(path, (_request, response) => void response.send("found"));
    const filled = template.replace(/\{\w+\}/g, "value");
    await supertest(app).get(filled).expect(200, "found");
  });

  it.each(["/a/{id}", "/", "/a/{id}.json", "/{a}-{b}"])("accepts %s of the seller", (text) => {
    const template = readTemplate(text);
    expect(template && writeTemplate(template)).toBe(text);
  });

  it.each(["", "a", "/a?b", "/a#b", "/{", "/{}", "/{a}/{a}", "/a b", "/{a/b}"])(
    "refuses %j of the seller",
    (text) => {
      expect(readTemplate(text)).toBeUndefined();
    },
  );

  it.each([
    ["/v2", "/", "/v2"],
    ["/v2", "/a/:id", "/v2/a/{id}"],
    ["/:tenant", "/", "/{tenant}"],
    ["/:tenant/v2", "/:id", "/{tenant}/v2/{id}"],
    ["/:id", "/:id", undefined],
  ])("the template below %s of %s is %s", (mount, path, expected) => {
    const [outer, inner] = [templateOf(mount, "Express 5"), templateOf(path, "Express 5")];
    const full = outer && inner && belowMount(outer, inner);
    expect(full && writeTemplate(full)).toBe(expected);
  });
});
