/** Cancels a body that is not read. A broken body is no error: the headers have been read. */
export function dropBody(response: Response): void {
  response.body?.cancel().catch(() => undefined);
}
