import type { Request } from "express";
import { pathOf } from "../routes/path-forms.ts";

/**
 * The host of a request, in the forms that applications read, and the path under which it is
 * served. One application may serve several hosts, and middleware may rewrite a path by
 * a header. A public URL stands for all hosts.
 */
export function placeOf(request: Request, publicUrl: string | undefined): readonly unknown[] {
  const { headers, hostname, baseUrl, url } = request;
  const hosts = publicUrl === undefined ? [headers.host, hostname] : [publicUrl];
  return [...hosts, pathOf(baseUrl + url)];
}
