import { describe, expect, it } from "vitest";
import { checkCommand } from "./known-commands.ts";
import { readShellCommands } from "./shell-command.ts";

const context = {
  blocks: [],
  folders: ["examples/behind-proxy"],
  isKnownVariable: (name: string) => name === "KNOWN",
};

async function complaintsOf(text: string): Promise<string[]> {
  const commands = readShellCommands(text);
  return (await Promise.all(commands.map((each) => checkCommand(each, context)))).flat();
}

describe("a command in a document", () => {
  it.each([
    "npm run devnet -- --chain-id 988",
    "npm test",
    "npm exec --yes pnpm@10.34.9 -- install",
    "KNOWN=1 npx vitest run packages/protocol",
    "coinslot bridge send --rpc-url http://localhost --yes",
    "coinslot bridge track 0x12 --to plasma",
    "curl -H 'x-api-key: a' http://localhost:8080/api/v1/plasma/usdt/0x12/token-balances?a=b",
    "export KNOWN=1",
    "node sell.mjs",
    "nginx -p . -c nginx.conf",
    "docker compose --profile devnet up --build",
    "docker compose run --rm indexer keys list",
  ])("passes: %s", async (text) => {
    expect(await complaintsOf(text)).toEqual([]);
  });

  it.each([
    ["npm run nothing", "there is no npm run nothing"],
    ["npm run devnet -- --nothing", "npm run devnet knows no --nothing"],
    ["npm exec --yes pnpm@9.0.0 -- install", "npm exec runs pnpm@"],
    ["npx nothing", "there is no npx nothing"],
    ["npm install nothing", "nothing is no package"],
    ["coinslot nothing", "coinslot has no command nothing"],
    ["coinslot bridge nothing", "coinslot bridge has no command nothing"],
    ["coinslot bridge send --nothing", "coinslot bridge send has no option --nothing"],
    ["coinslot bridge send --rpc", "coinslot bridge send has no option --rpc"],
    ["curl http://localhost/nowhere", "no server for /nowhere"],
    ["curl --nothing http://localhost/livez", "curl --nothing is not known"],
    ["node nowhere.mjs", "there is no nowhere.mjs"],
    ["nginx -p . -c nowhere.conf", "there is no nowhere.conf"],
    ["export NOTHING=1", "NOTHING means nothing to anybody"],
    ["NOTHING=1 npm test", "NOTHING means nothing to anybody"],
    ["docker compose --profile nothing up", "no profile nothing"],
    ["docker compose up nothing", "there is no service nothing"],
    ["docker compose run indexer nothing", "coinslot has no command nothing"],
    ["docker run nothing", "docker run is not known"],
    ["nothing --at all", "nothing is not a known command"],
    ["./nowhere.sh", "there is no ./nowhere.sh"],
  ])("fails: %s", async (text, complaint) => {
    expect((await complaintsOf(text)).join()).toContain(complaint);
  });
});
