import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import type { Header } from "../proxy/observer.ts";
import type { Cycle } from "./cycle.ts";
import { writeCommands } from "./write-commands.ts";

/** A cycle of one request, as a hostile recording may hold it. */
function cycleOf(target: string, headers: Header[] = [], text = ""): Cycle {
  const body = { bytes: text.length, text, isWhole: true };
  const request = {
    method: "POST",
    target,
    headers: headers.map(([n, v]) => [n, v] as [string, string]),
    body,
  };
  const leg = { number: 1, request, decoded: [], ways: [], startedAt: 1 };
  return { id: 1, method: "POST", target, startedAt: 1, legs: [leg], droppedLegs: 0 };
}

/** The words into which a shell splits a command. */
function wordsOf(command: string): string[] {
  const script = `printf '%s\\0' ${command}`;
  return execFileSync("sh", ["-c", script]).toString().split("\0").slice(0, -1);
}

const origin = "http://127.0.0.1:4022";

describe("a copied command", () => {
  it("is one word for each text, whatever it holds", () => {
    const text = `{"a":"it's $(touch x) \`id\` \\"}`;
    const { curl, pay } = writeCommands(
      cycleOf("/a?b='$HOME'", [["X-A", "'; id; '"]], text),
      origin,
    );
    const url = `${origin}/a?b='$HOME'`;
    expect(wordsOf(curl)).toEqual([
      "curl",
      "-i",
      "-X",
      "POST",
      url,
      "-H",
      "X-A: '; id; '",
      "--data-raw",
      text,
    ]);
    expect(wordsOf(pay)).toEqual(["coinslot", "pay", url, "-X", "POST", "-d", text]);
  });

  it("leads to no other host, and sends no file", () => {
    const headers: Header[] = [
      ["@/etc/passwd", "x"],
      ["content-type", "text/plain"],
    ];
    const { curl, pay } = writeCommands(cycleOf("@evil.example/", headers, "@/etc/passwd"), origin);
    expect(curl).not.toMatch(/evil|-H '@/);
    expect(pay).not.toMatch(/evil|'@/);
  });
});
