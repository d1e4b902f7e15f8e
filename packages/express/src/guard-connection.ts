import type { ServerResponse } from "node:http";

type Method = (...args: unknown[]) => unknown;

/**
 * The methods by which Node's own methods of a response store its head and write to its connection.
 * In front of those, a call of `ServerResponse.prototype.write` on a held response writes nothing:
 * `onBypass` is called instead. They throw nothing, since a stream that pipes would not catch it.
 *
 * What carries nothing of the answer goes out: `100 Continue` and `102 Processing`.
 */
export function guardConnection(
  response: ServerResponse,
  onBypass: () => void,
): Record<string, Method> {
  const writeRaw = methodOf(response, "_writeRaw");
  let isInterim = false;

  function block(): boolean {
    onBypass();
    return true;
  }

  function interim(name: string): Method {
    const method = methodOf(response, name);
    return (...args) => {
      isInterim = true;
      try {
        return Reflect.apply(method, response, args);
      } finally {
        isInterim = false;
      }
    };
  }

  return {
    _storeHeader: block,
    _send: block,
    _finish: block,
    _writeRaw: (...args) => (isInterim ? Reflect.apply(writeRaw, response, args) : block()),
    writeContinue: interim("writeContinue"),
    writeProcessing: interim("writeProcessing"),
  };
}

function methodOf(response: ServerResponse, name: string): Method {
  const method: unknown = Reflect.get(response, name);
  return isMethod(method) ? method : () => undefined;
}

function isMethod(value: unknown): value is Method {
  return typeof value === "function";
}
