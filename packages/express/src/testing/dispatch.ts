import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Express } from "express";

/**
 * Sends a request through an application without a network, for thousands of them: what stands in
 * the application runs as it would. Handlers must not answer.
 */
export function dispatch(app: Express, { method, url }: { method: string; url: string }): void {
  const request = new IncomingMessage(new Socket());
  request.method = method;
  request.url = url;
  app(request, new ServerResponse(request));
}
