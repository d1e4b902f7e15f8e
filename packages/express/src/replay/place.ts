import type { Request } from "express";

/**
 * The parts of a request by which applications tell requests of one URL apart: its host, in the
 * forms that they read; the URL under which it is served; the type of its body. One application
 * may serve several hosts, and middleware may rewrite a URL by a header. Parsers read the same
 * bytes by their type, or not at all. A public URL stands for all hosts.
 */
export function placeOf(request: Request, publicUrl: string | undefined): readonly unknown[] {
  const { headers, hostname, baseUrl, url } = request;
  const hosts = publicUrl === undefined ? [headers.host, hostname] : [publicUrl];
  const body = [headers["content-type"], headers["content-encoding"]];
  return [...hosts, baseUrl + url, ...body];
}
