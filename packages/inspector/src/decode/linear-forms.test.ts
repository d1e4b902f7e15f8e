import { describe, expect, it } from "vitest";
import { createBodyBuffer } from "../cycles/body-buffer.ts";
import { removed } from "./header-value.ts";
import { replaceParameters, replaceWebTokens, withoutLastWord } from "./linear-forms.ts";
import { createRedactor } from "./redact.ts";

const length = 500_000;

/** Texts at which a search that begins anew at each character would take minutes. */
const hostile: [string, string][] = [
  ["one long word before a quote", `{"image":"${"A".repeat(length)}","name":"x"`],
  ["escaped quotes without an end", '"\\'.repeat(length / 2)],
  ["a form without a value", `a=1&${"b".repeat(length)}`],
  ["many beginnings of a token", "eyJ-".repeat(length / 4)],
  ["many question marks", `a=${"?".repeat(length)}`],
  ["many assignments", "a=?".repeat(length / 3)],
  ["a part without an end", `--x\r\n${'name="'.repeat(length / 6)}`],
];

describe("the removal of secrets", () => {
  it.each(hostile)("ends for %s", (_case, text) => {
    const redactor = createRedactor(new Set());
    expect(redactor.body(text).length).toBeGreaterThan(0);
    expect(redactor.target(`/?${text}`).length).toBeGreaterThan(0);
    const buffer = createBodyBuffer(length);
    buffer.add(Buffer.from(text));
    buffer.add(Buffer.from("and more"));
    expect(buffer.record(undefined, redactor).isWhole).toBe(false);
  });

  it("leaves every text out where the secrets are too many to look for", () => {
    const redactor = createRedactor(new Set());
    const cookies = Array.from({ length: 600 }, (_value, index) => `c${index}=value-${index}`);
    redactor.learn([["Cookie", cookies.join("; ")]]);
    expect(redactor.text("weather")).toBe(removed);
  });
});

describe("linear forms", () => {
  it("cut the last word", () => {
    expect(withoutLastWord('{"a":"b c')).toBe('{"a":"b ');
    expect([withoutLastWord("whole"), withoutLastWord("a ")]).toEqual(["", "a "]);
  });

  it("replace parameters, also those of a URL in a value", () => {
    const replace = (name: string) => (name === "token" ? "X" : undefined);
    for (const [text, expected] of [
      ["/a?token=1&b=2#token=3", "/a?token=X&b=2#token=X"],
      ["/a?to=/b?token=1?2&c=3", "/a?to=/b?token=X&c=3"],
      ["token=a?b=c", "token=X"],
      ["/a?b", "/a?b"],
      ["=token", "=token"],
    ] as const) {
      expect(replaceParameters(text, replace)).toBe(expected);
    }
  });

  it("replace JSON Web Tokens, wherever they begin", () => {
    const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl";
    expect(replaceWebTokens(`a ${token}, b`, "X")).toBe("a X, b");
    expect(replaceWebTokens(`https://a.example/in.${token}.x`, "X")).toBe(
      "https://a.example/in.X.x",
    );
    expect(replaceWebTokens(`pre-${token}`, "X")).toBe("pre-X");
    expect(replaceWebTokens("monkeyJar-1234567.12345678.1", "X")).toContain("monkeyJar");
  });
});
