import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A way to a PostgreSQL server that counts the statements of its clients. */
export interface CountingProxy {
  /** The URL of the database by way of the proxy. */
  url: string;
  /** Statements since the start, `begin` and `commit` among them. */
  statements(): number;
  /** The same by their text. Lists of parameters and of rows count as one of each. */
  byText(): Map<string, number>;
  close(): Promise<void>;
}

/** A message's type, and its length in four bytes, itself included. */
const headerLength = 5;
const typeOf = (letter: string) => letter.charCodeAt(0);
const simpleQuery = typeOf("Q");
const parse = typeOf("P");
const execution = typeOf("E");
/** Bytes of a statement that tell it from the others. */
const maxTextLength = 4_000;

/** Starts a proxy before the database. The clients' processor time has no part in the counting. */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  const byText = new Map<string, number>();
  let statements = 0;
  const count = (text: string) => {
    statements += 1;
    byText.set(text, (byText.get(text) ?? 0) + 1);
  };
  const server = createServer((inbound) => {
    const outbound = connect(Number(targetPort), hostname);
    for (const socket of [inbound, outbound]) {
      sockets.add(socket.setNoDelay());
      socket.on("error", () => {});
      socket.on("close", () => {
        inbound.destroy();
        outbound.destroy();
        sockets.delete(socket);
      });
    }
    // Clients prepare each statement right before they execute it.
    let prepared = "";
    const readMessages = createMessageReader((type, body) => {
      if (type === simpleQuery) count(shapeOf(textAt(body, 0)));
      else if (type === parse) prepared = shapeOf(textAt(body, body.indexOf(0) + 1));
      else if (type === execution) count(prepared);
    });
    inbound.on("data", readMessages);
    inbound.pipe(outbound).pipe(inbound);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
  const url = new URL(target);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    statements: () => statements,
    byText: () => new Map(byText),
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

function textAt(body: Buffer, start: number): string {
  const end = body.indexOf(0, start);
  return body.toString("utf8", start, end < 0 ? body.length : end);
}

/** The statement without the length of its lists. */
function shapeOf(text: string): string {
  return text
    .replace(/\s+/g, " ")
    .replace(/\$\d+/g, "?")
    .replace(/(\([^()]*\))(?:, \1)+/g, "$1, ...")
    .replace(/\?(?:, \?)+/g, "?, ...")
    .replace(/(\([^()]*\))(?:, \([^()]*\))+/g, "$1, ...")
    .trim();
}

/**
 * Reads a client's stream. Its first message, the start-up, has a length and no type. Only the
 * beginning of a message's body is kept.
 */
function createMessageReader(onMessage: (type: number, body: Buffer) => void) {
  let isStarted = false;
  let pending = Buffer.alloc(0);
  let type: number | undefined;
  let body: Buffer[] = [];
  let kept = 0;
  let left = 0;
  const end = () => {
    if (type !== undefined) onMessage(type, Buffer.concat(body));
    type = undefined;
    body = [];
    kept = 0;
  };
  return (chunk: Buffer): void => {
    let rest = chunk;
    for (;;) {
      const part = rest.subarray(0, left);
      if (kept < maxTextLength && part.length > 0)
        body.push(part.subarray(0, maxTextLength - kept));
      kept += part.length;
      left -= part.length;
      rest = rest.subarray(part.length);
      if (left > 0) return;
      end();
      if (rest.length === 0) return;
      pending = Buffer.concat([pending, rest]);
      const needed = isStarted ? headerLength : headerLength - 1;
      if (pending.length < needed) return;
      if (isStarted) type = pending.readUInt8(0);
      left = pending.readUInt32BE(needed - 4) - 4;
      isStarted = true;
      rest = pending.subarray(needed);
      pending = Buffer.alloc(0);
    }
  };
}
