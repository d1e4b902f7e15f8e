import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Express } from "express";

/**
 * Sends thousands of requests through an application without a network: its middleware runs as
 * usual. Handlers must not answer.
 */
export function dispatch(app: Express, { method, url }: { method: string; url: string }): void {
  const request = new IncomingMessage(new Socket());
  request.method = method;
  request.url = url;
  app(request, new ServerResponse(request));
}
