/** A header as it stood on the wire: names keep their case, repeated ones stay apart. */
export type Header = readonly [name: string, value: string];

/** The head of a request, as the buyer sent it. */
export interface RequestHead {
  method: string;
  /** Path and query as written, with their percent signs. */
  target: string;
  headers: readonly Header[];
  /** The buyer's connection: equal for requests that share one. */
  connection: string;
  /** Unix milliseconds. */
  at: number;
}

/** The head of an answer, as the seller sent it. */
export interface AnswerHead {
  status: number;
  statusText: string;
  headers: readonly Header[];
  at: number;
}

/** The end of an exchange. */
export type ExchangeEnd =
  /** The whole answer has passed. */
  | "answered"
  /** The buyer closed its connection before that. */
  | "buyer left"
  /** The seller closed its connection before that. */
  | "seller broke off"
  /** No connection to the seller: the request never reached it. */
  | "unreachable";

/** Sees one exchange as it passes. `end` comes last, and once. */
export interface ExchangeObserver {
  requestChunk(chunk: Uint8Array): void;
  answer(head: AnswerHead): void;
  answerChunk(chunk: Uint8Array): void;
  end(how: ExchangeEnd, at: number): void;
}

/** Sees each exchange from its request's head on. It changes nothing. */
export interface Observer {
  open(head: RequestHead): ExchangeObserver;
}
