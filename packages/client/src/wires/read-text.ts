/** Largest body of a refusal that is read. */
const maxBodyBytes = 262_144;

/** The text of a body that is not too large, or the part that has arrived in time. */
export async function readText(
  response: Response,
  timeoutMs?: number,
): Promise<string | undefined> {
  if (response.body === null) return undefined;
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  // Not awaited: a copy is only cancelled when the response itself has come to its end, too.
  const stop = () => void reader.cancel().catch(() => undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
  let text = "";
  try {
    for (let length = 0; length <= maxBodyBytes; ) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      length += value.byteLength;
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
  }
  stop();
  return undefined;
}
