import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Application, type TypeDocOptions } from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { type Page, publicPackages, root } from "./page.ts";

/**
 * The API reference: one page for each public package, from its docstrings.
 *
 * @throws where typedoc warns
 */
export async function referencePages(): Promise<Page[]> {
  const names = publicPackages();
  const folder = mkdtempSync(join(tmpdir(), "coinslot-reference-"));
  try {
    await writeReference(names, folder);
    return names.map((name) => {
      const title = `@coinslot/${name} reference`;
      const text = readFileSync(join(folder, "packages", `${name}.md`), "utf8");
      const body = unnumberAnchors(text.replace(/^# .*\n/, ""));
      return {
        source: `packages/${name}/src/index.ts`,
        path: `reference/${name}.md`,
        group: "API reference",
        title,
        markdown: `# ${title}\n\n[What the package does, with examples](../packages/${name}.md).\n${body}`,
      };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function writeReference(names: readonly string[], folder: string): Promise<void> {
  const options: Partial<TypeDocOptions & PluginOptions> = {
    entryPoints: names.map((name) => join(root, "packages", name, "src/index.ts")),
    tsconfig: join(root, "site/tsconfig.json"),
    basePath: root,
    plugin: ["typedoc-plugin-markdown"],
    outputs: [{ name: "markdown", path: folder }],
    router: "module",
    readme: "none",
    disableSources: true,
    excludeExternals: true,
    excludeInternal: true,
    // CI compiles the program in a step of its own.
    skipErrorChecking: true,
    // Public types of viem and zod are named, not expanded.
    maxTypeConversionDepth: 4,
    validation: { notExported: false, invalidLink: true, invalidPath: true },
    groupOrder: ["Functions", "Variables", "Classes", "Interfaces", "Type Aliases", "*"],
    hideBreadcrumbs: true,
    hidePageHeader: true,
    sanitizeComments: true,
    useCodeBlocks: true,
    expandObjects: false,
    logLevel: "Warn",
  };
  const application = await Application.bootstrapWithPlugins(options);
  const project = await application.convert();
  if (project === undefined) throw new Error("typedoc could not read the packages.");
  // typedoc names a module after its folder, `express/src`.
  for (const each of project.children ?? []) each.name = each.name.replace(/\/src$/, "");
  application.validate(project);
  await application.generateOutputs(project);
  const { errorCount, warningCount } = application.logger;
  if (errorCount + warningCount > 0) {
    throw new Error(`typedoc: ${errorCount} errors and ${warningCount} warnings, listed above.`);
  }
}

/**
 * A type's name may be that of a class with its member, as `RpcErrorCode` beside `RpcError.code`.
 * typedoc numbers its anchor. A page has that heading once.
 */
function unnumberAnchors(markdown: string): string {
  const headings = [...markdown.matchAll(/^#+ (\w+)/gm)].map(([, name = ""]) => name.toLowerCase());
  return markdown.replace(/#(\w+)-\d+(?=\))/g, (anchor, name: string) =>
    headings.filter((heading) => heading === name).length === 1 ? `#${name}` : anchor,
  );
}
