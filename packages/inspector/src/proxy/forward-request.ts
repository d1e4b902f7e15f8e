import {
  type Agent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { request as httpsRequest } from "node:https";
import { isLoopbackHost } from "../local-node.ts";
import { endToEndHeaders, headerOf, pairsOf, toOutgoingHeaders } from "./end-to-end-headers.ts";
import type { ExchangeEnd, ExchangeObserver, Header } from "./observer.ts";

/** Largest head of a message, in bytes. Sellers that take less refuse by themselves. */
export const maxHeadBytes = 65_536;

/** Circumstances of each request. */
export interface Forwarding {
  seller: URL;
  agent: Agent;
  /** Name of this proxy in `Via`. */
  pseudonym: string;
  now(): number;
}

/**
 * Sends a request on, and its answer back, as streams. Method, path, headers, trailers and statuses
 * pass as they are; a `Via` is added to the request, as RFC 9110 demands of a gateway. Either
 * side's broken connection breaks the other one.
 */
export function forwardRequest(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  observer: ExchangeObserver,
  forwarding: Forwarding,
): void {
  const { seller, agent, now } = forwarding;
  const headers = forwardedHeaders(incoming, forwarding);
  const send = seller.protocol === "https:" ? httpsRequest : httpRequest;
  const upstream = send({
    protocol: seller.protocol,
    hostname: seller.hostname.replace(/^\[|\]$/g, ""),
    port: seller.port,
    method: incoming.method,
    path: incoming.url,
    agent,
    setHost: false,
    maxHeaderSize: maxHeadBytes,
  });
  // Without a length or chunks, the request has no body. Node would announce an empty one.
  upstream.useChunkedEncodingByDefault = false;
  for (const [name, value] of toOutgoingHeaders(headers)) upstream.setHeader(name, value);
  if (incoming.headers["transfer-encoding"] !== undefined) {
    upstream.setHeader("Transfer-Encoding", "chunked");
  }
  // A body may wait for the seller's word (100-continue), or come late.
  if (upstream.hasHeader("Expect") || upstream.hasHeader("Transfer-Encoding")) {
    upstream.flushHeaders();
  }
  let ended = false;
  const end = (how: ExchangeEnd) => {
    if (ended) return;
    ended = true;
    observer.end(how, now());
  };

  upstream.once("response", (answer) => {
    try {
      passAnswer(answer, outgoing, { observer, end, now });
    } catch (error) {
      // A head that Node reads, and does not write: a status below 100.
      upstream.destroy(error instanceof Error ? error : undefined);
    }
  });
  upstream.on("continue", () => outgoing.writeContinue());
  upstream.on("information", ({ statusCode, headers: { link } }) => {
    if (statusCode !== 103 || typeof link !== "string") return;
    try {
      outgoing.writeEarlyHints({ link });
    } catch {
      // A malformed hint is none.
    }
  });
  const fail = (isUnreachable: boolean) => {
    // An answer on its way ends by its own events.
    if (outgoing.headersSent || ended) return;
    end(isUnreachable ? "unreachable" : "seller broke off");
    answerPlainly(outgoing, 502, failureText(seller, isUnreachable));
  };
  upstream.on("error", (error) => fail(!upstream.reusedSocket && isConnectError(error)));
  upstream.on("close", () => {
    // Without an error, after a switch of protocols.
    fail(false);
    incoming.unpipe(upstream);
    incoming.resume();
  });
  outgoing.on("close", () => {
    if (outgoing.writableFinished) return;
    end("buyer left");
    upstream.destroy();
  });

  incoming.on("data", (chunk: Buffer) => observer.requestChunk(chunk));
  incoming.on("end", () => {
    const trailers = pairsOf(incoming.rawTrailers);
    if (trailers.length > 0) upstream.addTrailers(mutable(trailers));
    upstream.end();
  });
  incoming.pipe(upstream, { end: false });
}

/** Answers in one line of text, in place of the seller. */
export function answerPlainly(outgoing: ServerResponse, status: number, text: string): void {
  // A seller's text that could not be written would stay.
  outgoing.writeHead(status, STATUS_CODES[status], {
    "Content-Type": "text/plain; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  outgoing.end(`${text}\n`);
}

function passAnswer(
  answer: IncomingMessage,
  outgoing: ServerResponse,
  { observer, end, now }: PassedAnswer,
): void {
  const headers = endToEndHeaders(pairsOf(answer.rawHeaders));
  const status = answer.statusCode ?? 502;
  const statusText = answer.statusMessage ?? "";
  observer.answer({ status, statusText, headers, at: now() });
  outgoing.sendDate = false;
  outgoing.writeHead(status, statusText, headers.flat());
  // The head goes out at once: an answer may take its time between head and body.
  outgoing.flushHeaders();
  answer.on("data", (chunk: Buffer) => observer.answerChunk(chunk));
  answer.on("end", () => {
    const trailers = pairsOf(answer.rawTrailers);
    if (trailers.length > 0) outgoing.addTrailers(mutable(trailers));
    end("answered");
    outgoing.end();
  });
  answer.on("error", () => {
    end("seller broke off");
    outgoing.destroy();
  });
  answer.pipe(outgoing, { end: false });
}

interface PassedAnswer {
  observer: ExchangeObserver;
  end(how: ExchangeEnd): void;
  now(): number;
}

function forwardedHeaders(incoming: IncomingMessage, { seller, pseudonym }: Forwarding): Header[] {
  const received = pairsOf(incoming.rawHeaders);
  const isLocal = isLoopbackHost(seller.hostname);
  // A seller on this machine sees the URL that the buyer asked for: its offers name it.
  const headers = endToEndHeaders(received).map(([name, value]): Header => {
    const isHost = name.toLowerCase() === "host";
    return isHost && !isLocal ? [name, seller.host] : [name, value];
  });
  if (/\btrailers\b/i.test(headerOf(received, "te") ?? "")) {
    headers.push(["TE", "trailers"], ["Connection", "TE"]);
  }
  return [...headers, ["Via", `${incoming.httpVersion} ${pseudonym}`]];
}

/** Errors before a connection was there: the seller has seen nothing. */
function isConnectError(error: Error): boolean {
  return "syscall" in error && (error.syscall === "connect" || error.syscall === "getaddrinfo")
    ? true
    : error instanceof AggregateError;
}

function failureText(seller: URL, isUnreachable: boolean): string {
  return isUnreachable
    ? `The inspector cannot reach the seller at ${seller.origin}. Is it running?`
    : `The seller at ${seller.origin} closed the connection before its answer. It may have run.`;
}

/** The form of `addTrailers`. */
function mutable(headers: readonly Header[]): [string, string][] {
  return headers.map(([name, value]) => [name, value]);
}
