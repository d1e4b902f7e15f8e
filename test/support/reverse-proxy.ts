import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request as startRequest } from "node:http";
import { connect } from "node:net";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { startProgram } from "@coinslot/devnet";

/** A reverse proxy of this machine, in front of an application. */
export interface ReverseProxy {
  /** As the global one, except that every host is this proxy, over plain HTTP. */
  fetch: typeof fetch;
  /** Ends it, and removes its files. */
  stop(): Promise<void>;
}

/**
 * Starts nginx with one server.
 *
 * @param server directives of its `server` block
 * @param http directives beside it, such as `upstream` blocks
 */
export function startNginx(config: { server: string; http?: string }): Promise<ReverseProxy> {
  return start("nginx", ({ folder, socket }) => ({
    args: ["-p", folder, "-e", "stderr", "-c", join(folder, "configuration")],
    configuration: `
daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  ${config.http ?? ""}
  server {
    listen unix:${socket};
    ${config.server}
  }
}`,
  }));
}

/** Starts Caddy with one site for all hosts. */
export function startCaddy(site: string): Promise<ReverseProxy> {
  return start("caddy", ({ folder, socket }) => ({
    args: ["run", "--adapter", "caddyfile", "--config", join(folder, "configuration")],
    configuration: `
{
  admin off
  auto_https off
}
http:// {
  bind unix/${socket}
  ${site}
}`,
  }));
}

interface Place {
  folder: string;
  socket: string;
}

async function start(
  name: "nginx" | "caddy",
  configure: (place: Place) => { args: string[]; configuration: string },
): Promise<ReverseProxy> {
  const command = findCommand(name);
  const folder = await mkdtemp(join(tmpdir(), `${name}-`));
  const socket = join(folder, "socket");
  const { args, configuration } = configure({ folder, socket });
  await writeFile(join(folder, "configuration"), configuration);
  const program = startProgram(command, args, { folder, env: { HOME: folder } });
  let hasEnded = false;
  void program.ended.then(() => {
    hasEnded = true;
  });
  while (!(await isListening(socket))) {
    if (hasEnded) throw new Error(`${name} ended: ${program.printed()}`);
    await setTimeout(10);
  }
  return {
    fetch: (input, init) => send(socket, new Request(input, init)),
    async stop() {
      await program.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function findCommand(name: string): string {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "coinslot/proxies");
  const folders = [
    ...(process.env.PATH ?? "").split(delimiter),
    "/usr/sbin",
    join(cache, "usr/sbin"),
    join(cache, "usr/bin"),
  ];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error(`${name} is missing: run scripts/install-proxies.sh, or install it as a package`);
}

function isListening(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once("connect", () => resolve(true)).once("error", () => resolve(false));
    connection.once("connect", () => connection.destroy());
  });
}

function send(socketPath: string, request: Request): Promise<Response> {
  const { method, headers } = request;
  const url = new URL(request.url);
  return new Promise((resolve, reject) => {
    const sent = startRequest({
      socketPath,
      method,
      path: url.pathname + url.search,
      headers: { ...Object.fromEntries(headers), host: url.host },
      agent: false,
    });
    sent.once("error", reject);
    sent.once("response", (answer) => resolve(toResponse(answer)));
    sent.end();
  });
}

async function toResponse(answer: IncomingMessage): Promise<Response> {
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
  const { statusCode: status = 0 } = answer;
  return new Response(await buffer(answer), { status, headers: Object.fromEntries(headers) });
}
