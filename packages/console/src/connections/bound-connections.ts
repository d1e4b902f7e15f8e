import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Session } from "../sessions/session.ts";

/** Takes a connection out of the bound of strangers, once it has shown a session. */
export type Admit = (socket: Socket, holder: Session["holder"]) => void;

/** Of strangers, and of readers. Those of operators come on top. */
const maxConnections = 128;

/**
 * Bounds the connections of a listener. Where there are too many, the one that came first gives way
 * to the next: neither strangers nor readers keep any from the operator, or end its own.
 */
export function boundConnections(server: Server): Admit {
  const strangers = new Set<Socket>();
  const readers = new Set<Socket>();

  /** Insertion order is the order of arrival. */
  function enter(room: Set<Socket>, socket: Socket): void {
    room.add(socket);
    const [first] = room.size > maxConnections ? room : [];
    if (first === undefined) return;
    room.delete(first);
    first.destroy();
  }

  server.on("connection", (socket: Socket) => {
    socket.once("close", () => {
      strangers.delete(socket);
      readers.delete(socket);
    });
    enter(strangers, socket);
  });

  return (socket, holder) => {
    const isNew = strangers.delete(socket);
    if (holder === "operator") readers.delete(socket);
    else if (isNew) enter(readers, socket);
  };
}
