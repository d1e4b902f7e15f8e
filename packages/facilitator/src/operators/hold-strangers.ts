import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Bounds the connections of a server whose peers have not shown a key yet. The one that came first
 * gives way to the next. So a peer that holds connections keeps none from the operator, whose first
 * bytes show its key.
 *
 * @returns takes a connection out of the bound, once its peer has shown a key
 */
export function holdStrangers(server: Server, maxStrangers: number): (socket: Socket) => void {
  /** Insertion order is the order of arrival. */
  const strangers = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    strangers.add(socket);
    socket.once("close", () => strangers.delete(socket));
    const [first] = strangers.size > maxStrangers ? strangers : [];
    if (first === undefined) return;
    strangers.delete(first);
    first.destroy();
  });
  return (socket) => void strangers.delete(socket);
}
