import { tmpdir } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Program, startProgram } from "./start-program.ts";

function run(script: string, env?: Record<string, string>): Program {
  const place = { folder: tmpdir(), ...(env && { env }) };
  const program = startProgram("sh", ["-c", script], place);
  onTestFinished(program.kill);
  return program;
}

describe("a started program", () => {
  it("returns its output per stream, and its exit code", async () => {
    const program = run("echo $WORD; echo wrong >&2; exit 3", { WORD: "right" });
    expect(await program.ended).toBe(3);
    expect([program.stdout(), program.stderr()]).toEqual(["right\n", "wrong\n"]);
    expect(program.printed()).toHaveLength("right\nwrong\n".length);
  });

  it("has PATH only from this process's environment", async () => {
    const program = run("env");
    await program.ended;
    expect(program.stdout()).toContain("PATH=");
    expect(program.stdout()).not.toContain("VITEST");
  });

  it("is waited for until its output matches, earlier output included", async () => {
    const program = run("echo port 81; read answer; echo got $answer");
    expect((await program.waitFor(/port (\d+)/))[1]).toBe("81");
    program.child.stdin.write("yes\n");
    await program.ended;
    expect((await program.waitFor(/got (\w+)/))[1]).toBe("yes");
  });

  it("is reported with its output when it ends without a match", async () => {
    const waiting = run("echo cannot start").waitFor(/ready/);
    await expect(waiting).rejects.toThrow("It ended without /ready/:\ncannot start\n");
  });

  it("is killed", async () => {
    const program = run("echo up; read forever");
    await program.waitFor(/up/);
    await program.kill();
    expect(program.child.signalCode).toBe("SIGKILL");
  });
});
