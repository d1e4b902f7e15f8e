import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** An answer, as far as the OpenAPI document speaks of it. */
export interface ObservedAnswer {
  method: string;
  /** Without the query. */
  path: string;
  status: number;
  contentType: string | null;
  body: unknown;
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, ResponseDescription> }>>;
  components: { responses: Record<string, ResponseDescription> };
}

interface ResponseDescription {
  $ref?: string;
  content?: Record<string, unknown>;
}

/**
 * Compares answers with an OpenAPI document. Returns the fault of an answer, or nothing. An answer
 * outside the document's paths and methods must be an error in the usual shape.
 */
export function createContract(document: Document): (answer: ObservedAnswer) => string | undefined {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ $id: "api", ...document });
  const templates = Object.keys(document.paths)
    .map((path) => ({ path, form: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }))
    // Literal paths come before parameters.
    .sort((one, other) => one.path.split("{").length - other.path.split("{").length);

  function violations(pointer: string, body: unknown): string | undefined {
    const validate = ajv.compile({ $ref: `api#${pointer}` });
    return validate(body) ? undefined : ajv.errorsText(validate.errors);
  }

  return function check({ method, path, status, contentType, body }) {
    const template = templates.find(({ form }) => form.test(path))?.path;
    const operation =
      template === undefined ? undefined : document.paths[template]?.[method.toLowerCase()];
    if (template === undefined || operation === undefined) {
      if (status < 400) return `${method} ${path} is not in the document, and answers ${status}`;
      return violations("/components/schemas/Error", body);
    }
    const response = operation.responses[status];
    if (response === undefined) return `${method} ${template} does not document ${status}`;
    const type = contentType?.split(";")[0] ?? "";
    const name = response.$ref?.split("/").at(-1);
    const described = name === undefined ? response : document.components.responses[name];
    if (described?.content?.[type] === undefined) return `${status} is not documented as ${type}`;
    const place =
      name === undefined
        ? `/paths/${escapePointer(template)}/${method.toLowerCase()}/responses/${status}`
        : `/components/responses/${name}`;
    return violations(`${place}/content/${escapePointer(type)}/schema`, body);
  };
}

/** A name as part of a JSON pointer within a URI (RFC 6901). */
function escapePointer(name: string): string {
  return encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
}
