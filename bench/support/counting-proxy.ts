import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A way to a PostgreSQL server that counts the statements of its clients. */
export interface CountingProxy {
  /** The URL of the database by way of the proxy. */
  url: string;
  /** Statements since the start, `begin` and `commit` among them. */
  statements(): number;
  close(): Promise<void>;
}

/** A message's type, and its length in four bytes, itself included. */
const headerLength = 5;
/** Simple query, and execution of a prepared one. */
const statementTypes = new Set([..."QE"].map((type) => type.charCodeAt(0)));

/** Starts a proxy before the database. The clients' processor time has no part in the counting. */
export async function startCountingProxy(target: string): Promise<CountingProxy> {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let statements = 0;
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
    const readMessages = createMessageReader((type) => {
      if (statementTypes.has(type)) statements += 1;
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
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Reads a client's stream. Its first message, the start-up, has a length and no type. */
function createMessageReader(onMessage: (type: number) => void): (chunk: Buffer) => void {
  let isStarted = false;
  let pending = Buffer.alloc(0);
  let left = 0;
  return (chunk) => {
    let rest = chunk;
    for (;;) {
      const skipped = Math.min(left, rest.length);
      left -= skipped;
      rest = rest.subarray(skipped);
      if (left > 0 || rest.length === 0) return;
      pending = Buffer.concat([pending, rest]);
      const needed = isStarted ? headerLength : headerLength - 1;
      if (pending.length < needed) return;
      if (isStarted) onMessage(pending.readUInt8(0));
      left = pending.readUInt32BE(needed - 4) + (isStarted ? 1 : 0);
      isStarted = true;
      rest = pending;
      pending = Buffer.alloc(0);
    }
  };
}
