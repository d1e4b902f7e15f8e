/**
 * Handler of notifications on a channel. `payload` is `undefined` when a lost connection is back.
 * Notifications may have been missed, so the handler must read the tables.
 */
export type NotificationHandler = (payload: string | undefined) => void;

/** Messages between processes that share a database. They are hints: the truth is in the tables. */
export interface Notifications {
  /** Sends a message. Equal messages that wait in line are sent once. */
  notify(channel: string, payload: string): Promise<void>;
  /** Resolves when listening has begun, with the unsubscribe function. */
  listen(channel: string, handler: NotificationHandler): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/**
 * The handlers of each channel. A handler that throws is reported, and does not affect the others.
 */
export interface HandlerRegistry {
  add(channel: string, handler: NotificationHandler): void;
  /** Returns whether it was the last of its channel. */
  remove(channel: string, handler: NotificationHandler): boolean;
  channels(): readonly string[];
  call(channel: string, payload: string | undefined): void;
}

export function createHandlerRegistry(onError: (error: unknown) => void): HandlerRegistry {
  const handlers = new Map<string, Set<NotificationHandler>>();
  return {
    add(channel, handler) {
      const known = handlers.get(channel);
      if (known === undefined) handlers.set(channel, new Set([handler]));
      else known.add(handler);
    },
    remove(channel, handler) {
      const known = handlers.get(channel);
      known?.delete(handler);
      return known?.size === 0 ? handlers.delete(channel) : false;
    },
    channels: () => [...handlers.keys()],
    call(channel, payload) {
      for (const handler of handlers.get(channel) ?? []) {
        try {
          handler(payload);
        } catch (error) {
          onError(error);
        }
      }
    },
  };
}

/** Notifications within one process, for SQLite. Handlers run after the caller's current turn. */
export function createLocalNotifications(onError: (error: unknown) => void): Notifications {
  const registry = createHandlerRegistry(onError);
  return {
    async notify(channel, payload) {
      setImmediate(() => registry.call(channel, payload));
    },
    async listen(channel, handler) {
      registry.add(channel, handler);
      return async () => {
        registry.remove(channel, handler);
      };
    },
    async close() {},
  };
}
