import { expect, it } from "vitest";
import { readOperators } from "./operator-options.ts";

const key = "k".repeat(32);

it("the operator's commands are served on this machine by default, and never without a key", () => {
  expect(readOperators(undefined)).toEqual({ listener: undefined, problems: [] });
  expect(readOperators({ port: 4021, key }).listener).toEqual({
    host: "127.0.0.1",
    port: 4021,
    keys: [key],
  });
  for (const missing of [undefined, "", [], [key, undefined], [key, ""]]) {
    const { listener, problems } = readOperators({ port: 4021, key: missing });
    expect(listener).toBeUndefined();
    expect(problems).toEqual([expect.stringMatching(/never served without one/)]);
  }
});

it("a port, an address or a key that cannot work is a problem, which does not repeat the key", () => {
  const { listener, problems } = readOperators({ port: 70_000, host: "", key: "my short key" });
  expect(listener).toBeUndefined();
  expect(problems).toHaveLength(3);
  expect(problems.join()).not.toContain("my short key");
});
