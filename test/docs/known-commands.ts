import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runCli } from "@coinslot/cli";
import * as z from "zod";
import { readComposeFile } from "../deployment/compose-file.ts";
import { type CodeBlock, root } from "./code-block.ts";
import { isServedPath } from "./served-paths.ts";
import type { ShellCommand } from "./shell-command.ts";

/** The context for checking a command, besides the repository. */
export interface CommandContext {
  /** The blocks of the same document: they name files and serve paths. */
  blocks: readonly CodeBlock[];
  /** Where the command may be run: the folder of the document, and the repository's. */
  folders: readonly string[];
  isKnownVariable(name: string): boolean;
}

type Check = (args: readonly string[], context: CommandContext) => string[] | Promise<string[]>;

/** The programs of the examples, each with its argument check. Other programs are unknown. */
const programs: Readonly<Record<string, Check>> = {
  coinslot: checkCoinslot,
  cp: (args) => missingFiles(args.slice(0, -1)),
  curl: checkCurl,
  docker: checkDocker,
  export: (args, context) => unknownVariables(args, context),
  nginx: checkNginx,
  git: ([command = "", url = ""]) =>
    command === "clone" && url.startsWith("https://") ? [] : [`git ${command} is not known`],
  cd: () => [],
  node: checkNode,
  npm: checkNpm,
  promtool: ([_check, _case, ...files]) => missingFiles(files),
  npx: ([program = "", ...args]) =>
    program === "coinslot" ? checkCoinslot(args) : npxTools(program, args),
};

/** @returns what is wrong with a command: nothing, if it can be typed as it stands */
export async function checkCommand(
  { variables, words }: ShellCommand,
  context: CommandContext,
): Promise<string[]> {
  const complaints = unknownVariables(variables, context);
  const [program, ...args] = words;
  if (program === undefined) return complaints;
  const check = Object.hasOwn(programs, program) ? programs[program] : checkScript(program);
  if (check === undefined) return [...complaints, `${program} is not a known command`];
  return [...complaints, ...(await check(args, context))];
}

function checkScript(path: string): Check | undefined {
  return path.includes("/") ? () => missingFiles([path]) : undefined;
}

function missingFiles(paths: readonly string[]): string[] {
  return paths
    .filter((path) => !path.startsWith("-") && !existsSync(join(root, path)))
    .map((path) => `there is no ${path}`);
}

function missingFrom(folders: readonly string[], path: string): string[] {
  const isThere = folders.some((folder) => existsSync(join(root, folder, path)));
  return isThere ? [] : [`there is no ${path}`];
}

function unknownVariables(words: readonly string[], context: CommandContext): string[] {
  return words
    .map((word) => word.split("=", 1)[0] ?? "")
    .filter((name) => !context.isKnownVariable(name))
    .map((name) => `the variable ${name} means nothing to anybody`);
}

const manifestSchema = z.object({
  name: z.string().optional(),
  scripts: z.record(z.string(), z.string()).optional(),
  packageManager: z.string().optional(),
});

function readManifest(path: string): z.infer<typeof manifestSchema> {
  return manifestSchema.parse(JSON.parse(readFileSync(join(root, path), "utf8")));
}

function checkNpm([task = "", ...args]: readonly string[]): string[] | Promise<string[]> {
  const { scripts = {}, packageManager = "" } = readManifest("package.json");
  if (task === "test" || task === "start") {
    return Object.hasOwn(scripts, task) ? [] : [`there is no npm ${task}`];
  }
  if (task === "run") {
    const [script = "", ...rest] = args.filter((arg) => arg !== "--silent" && arg !== "--");
    if (!Object.hasOwn(scripts, script)) return [`there is no npm run ${script}`];
    return script === "coinslot" ? checkCoinslot(rest) : optionsOfTask(script, rest);
  }
  if (task === "install") return args.filter((name) => !isInstallable(name)).map(notInstallable);
  if (task === "exec") {
    const [manager = ""] = packageManager.split("+");
    return args.includes(manager) ? [] : [`npm exec runs ${manager} alone`];
  }
  return [`npm ${task} is not known`];
}

function notInstallable(name: string): string {
  return `${name} is no package of this repository, and none that its tests use`;
}

/** The names of the packages here, and of those that the tests install. */
function isInstallable(name: string): boolean {
  if (name.startsWith("-")) return true;
  if (name.endsWith("packed/*.tgz")) return true;
  const own = readdirSync(join(root, "packages")).map(
    (folder) => readManifest(`packages/${folder}/package.json`).name,
  );
  return own.includes(name) || existsSync(join(root, "test/node_modules", name));
}

/** Options of a task are in the sources of its program. */
function optionsOfTask(script: string, args: readonly string[]): string[] {
  const runner = readFileSync(join(root, "scripts/run.mjs"), "utf8");
  const started = new RegExp(`^  "?${script}"?: \\[.*"([^"]+)"\\]`, "m").exec(runner)?.[1];
  const options = args.filter((arg) => arg.startsWith("--"));
  if (started === undefined) return options.map((option) => `${script} takes no ${option}`);
  const folder = join(root, started, "..");
  const sources = readdirSync(folder)
    .filter((name) => /\.(ts|mjs)$/.test(name))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n");
  return options
    .filter((option) => !sources.includes(option))
    .map((option) => `npm run ${script} knows no ${option}`);
}

/** The tools that the repository itself brings. */
function npxTools(program: string, args: readonly string[]): string[] {
  if (!existsSync(join(root, "node_modules/.bin", program))) return [`there is no npx ${program}`];
  return missingFiles(args.filter((arg) => arg.includes("/")));
}

/** Follows the words into the command's own help, which lists its options. */
async function checkCoinslot(args: readonly string[]): Promise<string[]> {
  const path: string[] = [];
  let help = await helpOf(path);
  for (const word of args) {
    if (word.startsWith("-")) break;
    const further = await helpOf([...path, word]);
    if (!further.startsWith(`Usage: coinslot ${[...path, word].join(" ")} `)) break;
    path.push(word);
    help = further;
  }
  const name = ["coinslot", ...path].join(" ");
  const next = args[path.length];
  const usage = help.split("\n", 1)[0] ?? "";
  const hasArgument = /[<[](?!options\]|command\])/.test(usage);
  const complaints =
    next !== undefined && !next.startsWith("-") && !hasArgument
      ? [`${name} has no command ${next}`]
      : [];
  const unknown = args
    .filter((arg) => arg.startsWith("-"))
    .map((arg) => arg.split("=", 1)[0] ?? arg)
    .filter((option) => !new RegExp(`(^|[ ,])${option}(?![\\w-])`, "m").test(help));
  return [...complaints, ...unknown.map((option) => `${name} has no option ${option}`)];
}

async function helpOf(path: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const say = (text: string) => lines.push(text);
  await runCli([...path, "--help"], {
    out: say,
    err: say,
    confirm: undefined,
    isColourful: false,
    env: {},
    signal: new AbortController().signal,
  });
  return lines.join("\n");
}

/** Options of curl, and whether a value follows. */
const curlOptions: Readonly<Record<string, boolean>> = {
  "-H": true,
  "-d": true,
  "-i": false,
  "-m": true,
  "-N": false,
  "-s": false,
  "-X": true,
};

function checkCurl(args: readonly string[], { blocks }: CommandContext): string[] {
  const complaints: string[] = [];
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? "";
    if (arg.startsWith("-")) {
      if (!Object.hasOwn(curlOptions, arg)) complaints.push(`curl ${arg} is not known`);
      if (curlOptions[arg]) index += 1;
      continue;
    }
    // A variable may hold a service's URL.
    const text = arg.replace(/^\$[A-Z_]+(?=\/)/, "http://localhost");
    if (!URL.canParse(text)) complaints.push(`${arg} is no URL`);
    else if (!isServedPath(new URL(text).pathname, blocks)) {
      complaints.push(`no server for ${new URL(text).pathname}`);
    }
  }
  return complaints;
}

function checkNode(args: readonly string[], { blocks, folders }: CommandContext): string[] {
  const isTold = (path: string) => blocks.some(({ text }) => text.startsWith(`// ${path}`));
  const script = args.find((arg) => !arg.startsWith("-") && arg !== "tsx");
  if (script === undefined) return ["node is given no file"];
  return isTold(script) ? [] : missingFrom(folders, script);
}

/** nginx, with a configuration beside the document. */
function checkNginx(args: readonly string[], { folders }: CommandContext): string[] {
  return missingFrom(folders, args[args.indexOf("-c") + 1] ?? "");
}

/** Options of docker compose and its commands, and whether a value follows. */
const composeOptions: Readonly<Record<string, boolean>> = {
  "--build": false,
  "--detach": false,
  "--follow": false,
  "--profile": true,
  "--rm": false,
  "--volumes": false,
};

/**
 * `docker compose`, with profiles and services of docker-compose.yml; a service's command is its
 * own.
 */
function checkDocker([compose, ...args]: readonly string[]): string[] | Promise<string[]> {
  if (compose !== "compose") return [`docker ${compose} is not known`];
  const { services } = readComposeFile();
  const profiles = Object.values(services).flatMap((service) => service.profiles);
  const complaints: string[] = [];
  let command: string | undefined;
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? "";
    if (arg.startsWith("-")) {
      if (!Object.hasOwn(composeOptions, arg))
        complaints.push(`docker compose ${arg} is not known`);
      if (composeOptions[arg]) {
        index += 1;
        if (!profiles.includes(args[index] ?? "")) complaints.push(`no profile ${args[index]}`);
      }
    } else if (command === undefined) {
      command = arg;
      if (!["up", "down", "logs", "ps", "run", "stop"].includes(arg)) {
        complaints.push(`docker compose ${arg} is not known`);
      }
    } else {
      if (!Object.hasOwn(services, arg)) return [...complaints, `there is no service ${arg}`];
      if (command === "run") return checkRun(complaints, args.slice(index + 1));
    }
  }
  return complaints;
}

async function checkRun(complaints: string[], args: readonly string[]): Promise<string[]> {
  return [...complaints, ...(await checkCoinslot(args))];
}
