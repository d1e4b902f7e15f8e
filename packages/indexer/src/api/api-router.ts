import type { IRouter, Request, RequestHandler, Response } from "express";
import type { IndexerLogger } from "../logger.ts";
import type { Access, Caller } from "./access.ts";
import { ApiError } from "./api-error.ts";
import type { ApiMetrics } from "./api-metrics.ts";
import { docsPage } from "./docs/docs-page.ts";
import { createErrorHandler } from "./error-answer.ts";
import { buildOpenApiDocument, type OpenApiOptions } from "./openapi-document.ts";
import type { Handlers } from "./operation-handlers.ts";
import {
  apiPrefix,
  needsOwner,
  type Operation,
  type OperationId,
  operations,
} from "./operations.ts";

export interface ApiRouterOptions extends OpenApiOptions {
  handlers: Handlers;
  access: Access;
  logger: IndexerLogger;
  metrics: ApiMetrics | undefined;
}

/**
 * Mounts the API on a router of Express 4 or 5. Each request passes the same steps: access and
 * limit, then input, then the handler. Every path under the prefix is answered here, in JSON; other
 * paths are left alone.
 */
export function fillRouter(router: IRouter, options: ApiRouterOptions): void {
  const { handlers, access, logger, metrics, authStatus, hasKeys } = options;

  function route(id: OperationId): RequestHandler {
    const operation: Operation = operations[id];
    return function answer(request, response, next) {
      metrics?.observe(id, response);
      run(id, operation, request, response).catch(next);
    };
  }

  async function run(id: OperationId, operation: Operation, request: Request, response: Response) {
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("X-Content-Type-Options", "nosniff");
    const caller = await admit({ id, operation }, request, response);
    const answer = await handlers[id]({ request, response, caller });
    if (answer !== undefined) response.json(answer);
  }

  async function admit(
    named: { id: OperationId; operation: Operation },
    request: Request,
    response: Response,
  ): Promise<Caller> {
    try {
      return await access.admit(request, response, named);
    } catch (error) {
      // Keys are in the database. While it is away no key can be checked, and health has to report
      // that.
      if (named.id !== "getHealth" || error instanceof ApiError) throw error;
      return { name: "unknown", key: undefined, isStillWelcome: async () => false };
    }
  }

  for (const [path, methods] of operationsByPath(hasKeys)) {
    const place = router.route(`${apiPrefix}${path.replaceAll(/\{(\w+)\}/g, ":$1")}`);
    for (const [method, id] of methods) place[method](route(id));
    const allowed = [...methods.keys()].flatMap((method) =>
      method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()],
    );
    place.all(refuse(405, (method) => `Use ${allowed.join(", ")} here, not ${method}.`, allowed));
  }
  router.use(
    apiPrefix,
    refuse(404, (method, path) => `Unknown endpoint: ${method} ${path}.`),
  );

  /** A 404 for a path or method that does not exist; only callers with a key learn that. */
  function refuse(
    status: 404 | 405,
    describe: (method: string, path: string) => string,
    allowed?: readonly string[],
  ): RequestHandler {
    return function answerRefusal(request, response, next) {
      metrics?.observe("unknown", response);
      const { method, baseUrl, path } = request;
      const headers = allowed === undefined ? {} : { Allow: allowed.join(", ") };
      access
        .requireKey(request)
        .then(() => {
          throw new ApiError(status, describe(method, `${baseUrl}${path}`), { headers });
        })
        .catch(next);
    };
  }

  const document = buildOpenApiDocument({ authStatus, hasKeys });
  router.get("/openapi.json", (_request, response) => {
    response.json(document);
  });
  router.get("/docs", (_request, response) => {
    response.setHeader("Content-Security-Policy", docsPage.contentSecurityPolicy);
    response.type("html").send(docsPage.html);
  });

  router.use(apiPrefix, createErrorHandler(logger));
}

type Methods = Map<Operation["method"], OperationId>;

function operationsByPath(hasKeys: boolean): Map<string, Methods> {
  const paths = new Map<string, Methods>();
  for (const id of operationIds) {
    const { path, method } = operations[id];
    if (!hasKeys && needsOwner(operations[id])) continue;
    const methods = paths.get(path) ?? new Map();
    paths.set(path, methods.set(method, id));
  }
  return paths;
}

const operationIds = Object.keys(operations).filter((id): id is OperationId =>
  Object.hasOwn(operations, id),
);
