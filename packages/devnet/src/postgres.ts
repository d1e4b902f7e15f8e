import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase, type Database } from "./database.ts";
import { guardedCommand } from "./guarded-command.ts";
import { type PostgresProgram, preparePostgres } from "./postgres-program.ts";

export type Postgres = {
  /** URL of the superuser, without a password; reachable from this machine alone. */
  url: string;
  createDatabase: () => Promise<Database>;
  /** Ends the server and removes its data. Idempotent. */
  stop: () => Promise<void>;
};

/**
 * Starts a PostgreSQL server on a free port, with its data in a temporary directory. Its settings
 * are the defaults, except for more connections: it writes durably (`fsync`). It ends with `stop`,
 * or with this process, even if that is killed; its data is then removed.
 *
 * @throws if there are no binaries for this platform, or the server does not start
 */
export async function startPostgres(): Promise<Postgres> {
  const directory = await mkdtemp(join(tmpdir(), "coinslot-postgres-"));
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    const program = await preparePostgres({ directory });
    const data = join(directory, "data");
    await initialise({ program, directory, data });
    const { server, port } = await startOnFreePort({ program, directory, data });
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    return {
      url,
      createDatabase: () => createDatabase(url),
      stop: async () => {
        await stopServer(server);
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

type ServerFiles = { program: PostgresProgram; directory: string; data: string };

async function initialise({ program, directory, data }: ServerFiles): Promise<void> {
  const { file, args } = guardedCommand({
    file: program.initdb,
    args: [
      `--pgdata=${data}`,
      "--username=postgres",
      "--auth=trust",
      "--encoding=UTF8",
      "--no-locale",
      // initdb's writes may be lost with the machine; the server's later writes may not.
      "--no-sync",
    ],
    signal: "QUIT",
    directory,
  });
  await promisify(execFile)(file, args, {
    ...program.user,
    cwd: "/",
    env: { PATH: process.env.PATH },
  });
}

/**
 * PostgreSQL cannot choose a free port itself, and another process may take the found one: then
 * another port is tried.
 */
async function startOnFreePort(
  files: ServerFiles,
): Promise<{ server: ChildProcess; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await findFreePort();
    try {
      return { server: await startServer(files, port), port };
    } catch (error) {
      if (attempt === 5) throw error;
    }
  }
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string")
    throw new Error("A listening socket has no port.");
  return address.port;
}

async function startServer(
  { program, directory, data }: ServerFiles,
  port: number,
): Promise<ChildProcess> {
  const settings = {
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: 300,
  };
  const { file, args } = guardedCommand({
    file: program.postgres,
    args: [
      "-D",
      data,
      ...Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]),
    ],
    signal: "QUIT",
    directory,
  });
  const server = spawn(file, args, {
    ...program.user,
    cwd: "/",
    env: { PATH: process.env.PATH },
    detached: true,
    stdio: ["pipe", "ignore", "pipe"],
  });
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes("ready to accept connections")) resolve();
    });
    server.once("error", reject);
    server.once("exit", () => reject(new Error(`PostgreSQL did not start. Its output: ${log}`)));
  });
  // From here on its log is read, lest the pipe fill up, and dropped.
  server.stderr?.removeAllListeners("data").resume();
  return server;
}

/** Immediate shutdown: nothing is saved, since the data is removed as well. */
async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, "exit");
  server.kill("SIGQUIT");
  await exited;
}
