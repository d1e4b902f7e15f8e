# What runs in containers: the coinslot command (facilitator, indexing service, console, and a chain to try them on)
# and the paid indexer. One build, one target for each. docker-compose.yml puts them together.
ARG NODE_VERSION=24.9.0-bookworm-slim

FROM node:${NODE_VERSION} AS build
WORKDIR /build
ENV CI=true
# pnpm in the version, and with the hash, that package.json names.
RUN corepack enable pnpm
# The store is filled from the lock file alone, so that it is kept while only sources change.
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
RUN pnpm fetch
COPY . .
RUN pnpm install --offline --frozen-lockfile
RUN pnpm run build
# Each of them with its production dependencies, and built files only.
RUN pnpm --filter @coinslot/cli --prod --no-optional --legacy deploy /out/coinslot
RUN pnpm --filter @coinslot/cli --prod --legacy deploy /out/devnet
RUN pnpm --filter @coinslot/paid-indexer-app --prod --no-optional --legacy deploy /out/paid-indexer

FROM node:${NODE_VERSION} AS runtime
ENV NODE_ENV=production
# Databases are in /data by default; /shared is for files that one container provides for another.
RUN mkdir /data /shared && chown node:node /data /shared
WORKDIR /data
COPY docker/healthcheck.mjs docker/guide.mjs /usr/local/lib/coinslot/
USER node
ENTRYPOINT ["node", "/app/dist/main.js"]

FROM runtime AS devnet
COPY --from=build /out/devnet /app/
EXPOSE 8545
# The files are there when the chain is complete.
HEALTHCHECK --interval=2s --start-period=30s CMD ["test", "-s", "/shared/PAY_TO"]
CMD ["devnet", "--host", "0.0.0.0", "--port", "8545", "--files", "/shared"]

FROM runtime AS indexer
COPY --from=build /out/coinslot /app/
ENV INDEXER_HOST=0.0.0.0 INDEXER_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=10s --start-period=30s CMD ["node", "/usr/local/lib/coinslot/healthcheck.mjs", "http://127.0.0.1:8080/readyz"]
CMD ["indexer"]

FROM runtime AS paid-indexer
COPY --from=build /out/paid-indexer /app/
ENV PAID_INDEXER_HOST=0.0.0.0 PAID_INDEXER_PORT=4021
EXPOSE 4021
HEALTHCHECK --interval=10s --start-period=30s CMD ["node", "/usr/local/lib/coinslot/healthcheck.mjs", "http://127.0.0.1:4021/readyz"]

FROM runtime AS console
COPY --from=build /out/coinslot /app/
EXPOSE 4040
HEALTHCHECK --interval=10s --start-period=30s CMD ["node", "/usr/local/lib/coinslot/healthcheck.mjs", "http://127.0.0.1:4040/api/session"]
# From outside of the container every browser is on another machine, and these are its names for this port.
CMD ["console", "--host", "0.0.0.0", "--port", "4040", "--origin", "http://localhost:4040", "--origin", "http://127.0.0.1:4040"]

# The last one, which a build without a target makes.
FROM runtime AS facilitator
COPY --from=build /out/coinslot /app/
ENV FACILITATOR_HOST=0.0.0.0 FACILITATOR_PORT=4022
EXPOSE 4022
HEALTHCHECK --interval=10s --start-period=30s CMD ["node", "/usr/local/lib/coinslot/healthcheck.mjs", "http://127.0.0.1:4022/readyz"]
CMD ["facilitator"]
