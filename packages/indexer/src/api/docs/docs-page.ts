export const docsPage = { html: "", contentSecurityPolicy: "" };
