import type { PathDialect } from "../routes/path-dialect.ts";

/** A path template of OpenAPI. */
export interface PathTemplate {
  /** The texts around the parameters: one more than there are parameters. */
  texts: readonly string[];
  parameters: readonly TemplateParameter[];
}

/** A parameter of a path. */
export interface TemplateParameter {
  name: string;
  /** True if its value may hold slashes. OpenAPI cannot say so. */
  isRest: boolean;
}

const parameter = String.raw`:([A-Za-z_]\w*)(?![\w\x80-\uffff])`;
const wildcards: Record<PathDialect, string> = {
  // Both read a `*` behind a slash alone as the rest of the path; Express 5 wants a name.
  "Express 4": String.raw`(?<=/)(\*)(?=/|$)`,
  "Express 5": String.raw`(?<=/)\*([A-Za-z_]\w*)(?=/|$)`,
};
/** Signs that either Express treats as part of a pattern. */
const special = /[:*?+(){}[\]\\!|^$"]/;

/**
 * Converts the path of a route key. Parameters and wildcards are converted; optional parts, groups
 * and regular expressions have no template.
 *
 * @returns `undefined` for a path without a template
 */
export function templateOf(path: string, dialect: PathDialect): PathTemplate | undefined {
  const pattern = new RegExp(`${parameter}|${wildcards[dialect]}`, "g");
  const parts = path.split(pattern);
  const texts: string[] = [];
  const parameters: TemplateParameter[] = [];
  for (let index = 0; index < parts.length; index += 3) {
    texts.push(parts[index] ?? "");
    const [, named, rest] = parts.slice(index, index + 3);
    if (named !== undefined) parameters.push({ name: named, isRest: false });
    else if (rest !== undefined) {
      parameters.push({ name: rest === "*" ? "rest" : rest, isRest: true });
    }
  }
  return checked({ texts, parameters }, special);
}

/**
 * Reads a template that the seller wrote.
 *
 * @returns `undefined` for a text that is none
 */
export function readTemplate(text: string): PathTemplate | undefined {
  const parts = text.split(/\{([^{}/?#]+)\}/);
  const texts = parts.filter((_part, index) => index % 2 === 0);
  const names = parts.filter((_part, index) => index % 2 === 1);
  const parameters = names.map((name) => ({ name, isRest: false }));
  return checked({ texts, parameters }, /[{}?#\s]/);
}

/** The template below a mount path. */
export function belowMount(mount: PathTemplate, template: PathTemplate): PathTemplate | undefined {
  const [first = "", ...others] = template.texts;
  const isRoot = first === "/" && others.length === 0;
  const last = mount.texts.at(-1) ?? "";
  const texts = [...mount.texts.slice(0, -1), isRoot ? last : last + first, ...others];
  return checked({ texts, parameters: [...mount.parameters, ...template.parameters] }, /(?!)/);
}

/** A template without the names of its parameters: OpenAPI forbids two of one shape. */
export function shapeOf(template: PathTemplate): string {
  return writeTemplate(template, () => "{}");
}

/** A template as OpenAPI writes it. */
export function writeTemplate(
  { texts, parameters }: PathTemplate,
  write: (parameter: TemplateParameter) => string = ({ name }) => `{${name}}`,
): string {
  return texts.reduce((path, text, index) => {
    const next = parameters[index];
    return path + text + (next === undefined ? "" : write(next));
  }, "");
}

function checked(template: PathTemplate, refused: RegExp): PathTemplate | undefined {
  const { texts, parameters } = template;
  const names = new Set(parameters.map(({ name }) => name));
  const isPlain = texts[0]?.startsWith("/") && !texts.some((text) => refused.test(text));
  return isPlain && names.size === parameters.length ? template : undefined;
}
