import { execFileSync } from "node:child_process";
import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { mnemonicToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { exitCode } from "../exit-code.ts";
import { loadEnvironment } from "../load-environment.ts";
import { inFolder, runCoinslot } from "../testing/run-coinslot.ts";

const patterns = [".env", ".env.backup-*", "coinslot-payment-*.json"];
const secrets = ["FACILITATOR_SEED_PHRASE", "SELLER_SEED_PHRASE", "WALLET_SEED_PHRASE"];

async function readEnv(folder: string) {
  return (await loadEnvironment({}, folder)).env;
}

function ignored(folder: string): string[] {
  return readFileSync(join(folder, ".gitignore"), "utf8").trim().split("\n");
}

describe("coinslot init", () => {
  it("writes three new seeds that only the owner can read, and prints their addresses without a seed", async () => {
    await inFolder(async (folder) => {
      const { code, out, err } = await runCoinslot(["init"], { folder });
      expect(code).toBe(exitCode.done);
      expect(statSync(join(folder, ".env")).mode & 0o777).toBe(0o600);
      const env = await readEnv(folder);
      const phrases = secrets.map((name) => env[name] ?? "");
      expect(new Set(phrases).size).toBe(3);
      for (const phrase of phrases) {
        expect(phrase.split(" ")).toHaveLength(12);
        expect(out).toContain(mnemonicToAccount(phrase).address);
        expect(out + err + JSON.stringify(ignored(folder))).not.toContain(phrase);
      }
      expect(env.PAY_TO).toBe(mnemonicToAccount(phrases[1] ?? "").address);
      expect(env).toMatchObject({ COINSLOT_NETWORK: "eip155:9745" });
      expect(out).toContain("coinslot doctor");
      expect(ignored(folder)).toEqual(patterns);
    });
  });

  it("overwrites nothing, and keeps a backup with --force", async () => {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, ".env"), "PAY_TO=1\n");
      const refused = await runCoinslot(["init"], { folder });
      expect(refused.code).toBe(exitCode.usage);
      expect(refused.err).toContain("--force");
      expect(await readEnv(folder)).toEqual({ PAY_TO: "1" });

      const { out } = await runCoinslot(["init", "--force", "--json"], { folder });
      const { backup, relayer } = JSON.parse(out);
      expect(readFileSync(backup, "utf8")).toBe("PAY_TO=1\n");
      expect(statSync(backup).mode & 0o777).toBe(0o600);
      const phrase = (await readEnv(folder)).FACILITATOR_SEED_PHRASE ?? "";
      expect(mnemonicToAccount(phrase).address).toBe(relayer);
      expect(readdirSync(folder)).toHaveLength(3);
    });
  });

  it("adds missing lines to a .gitignore, and warns when git already tracks the file", async () => {
    await inFolder(async (folder) => {
      const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args]);
      git("init", "--quiet");
      writeFileSync(join(folder, ".gitignore"), "node_modules/\n.env*");
      expect((await runCoinslot(["init"], { folder })).code).toBe(exitCode.done);
      expect(ignored(folder)).toEqual(["node_modules/", ".env*", "coinslot-payment-*.json"]);

      writeFileSync(join(folder, ".gitignore"), "node_modules/");
      git("add", "--force", ".env");
      const tracked = await runCoinslot(["init", "--force"], { folder });
      expect(tracked.err).toContain("git rm --cached .env");
      expect(ignored(folder)).toEqual(["node_modules/", ...patterns]);
    });
  });

  it("runs no program that a repository at hand names", async () => {
    await inFolder(async (folder) => {
      const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args]);
      git("init", "--quiet");
      writeFileSync(join(folder, "a"), "");
      git("add", "a");
      const program = join(folder, "program");
      writeFileSync(program, '#!/bin/sh\ntouch "$0.has-run"\n', { mode: 0o700 });
      git("config", "core.fsmonitor", program);
      expect((await runCoinslot(["init"], { folder })).code).toBe(exitCode.done);
      expect(readdirSync(folder)).not.toContain("program.has-run");
      expect(ignored(folder)).toEqual(patterns);
    });
  });

  it("runs no program by which a repository at hand fetches what it lacks", async () => {
    await inFolder(async (folder) => {
      const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args]);
      git("init", "--quiet");
      for (const name of ["kept", "lacking"]) {
        mkdirSync(join(folder, name));
        writeFileSync(join(folder, name, "file"), name);
      }
      git("add", ".");
      git("-c", "user.name=a", "-c", "user.email=a", "commit", "--quiet", "--message=a");
      // The index then names the other folder alone, and git looks into that for .env.
      git("sparse-checkout", "init", "--cone", "--sparse-index");
      git("sparse-checkout", "set", "kept");
      const lacking = git("rev-parse", "HEAD:lacking").toString().trim();
      rmSync(join(folder, ".git", "objects", lacking.slice(0, 2), lacking.slice(2)));
      const program = join(folder, "program");
      writeFileSync(program, '#!/bin/sh\ntouch "$0.has-run"\nexit 1\n', { mode: 0o700 });
      for (const [name, value] of [
        ["core.repositoryFormatVersion", "1"],
        ["extensions.partialClone", "stranger"],
        ["remote.stranger.promisor", "true"],
        ["remote.stranger.url", "ssh://stranger/a"],
        ["core.sshCommand", `'${program}'`],
      ] as const)
        git("config", name, value);
      expect((await runCoinslot(["init"], { folder })).code).toBe(exitCode.done);
      expect(readdirSync(folder)).not.toContain("program.has-run");
    });
  });

  it.each([false, true])(
    "does not write through a link in place of .gitignore, and warns (hard: %s)",
    async (isHard) => {
      await inFolder(async (folder) => {
        const checkout = join(folder, "checkout");
        mkdirSync(checkout);
        const other = join(folder, "profile");
        writeFileSync(other, "kept");
        if (isHard) linkSync(other, join(checkout, ".gitignore"));
        else symlinkSync(other, join(checkout, ".gitignore"));
        const { code, err } = await runCoinslot(["init"], { folder: checkout });
        expect(code).toBe(exitCode.done);
        expect(readFileSync(other, "utf8")).toBe("kept");
        expect(err).toContain(".gitignore cannot be written, or is a link");
      });
    },
  );

  it("moves a link in place of .env aside, and leaves the mode of its target", async () => {
    await inFolder(async (folder) => {
      const checkout = join(folder, "checkout");
      mkdirSync(checkout);
      const other = join(folder, "page");
      writeFileSync(other, "kept", { mode: 0o644 });
      symlinkSync(other, join(checkout, ".env"));
      const { code } = await runCoinslot(["init", "--force"], { folder: checkout });
      expect(code).toBe(exitCode.done);
      expect(statSync(other).mode & 0o777).toBe(0o644);
      expect(readFileSync(other, "utf8")).toBe("kept");
    });
  });

  it("leaves unknown values of a network to the user", async () => {
    await inFolder(async (folder) => {
      const { out } = await runCoinslot(["init", "--network", "eip155:4242"], { folder });
      expect(out).toContain("COINSLOT_RPC_URL");
      expect(await readEnv(folder)).toMatchObject({ COINSLOT_RPC_URL: "" });
      expect(await runCoinslot(["init", "--network", "base"], { folder })).toMatchObject({
        code: exitCode.usage,
      });
    });
  });
});
