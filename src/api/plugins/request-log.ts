/** One line for each answered request. Public routes, such as probes and pages, log at debug level unless they fail. */
import type { App } from '../kit/app-type.ts';

export function useRequestLog(app: App): void {
  app.addHook('onResponse', (request, reply, done) => {
    const line = {
      method: request.method,
      route: request.routeOptions.url ?? request.url.split('?')[0],
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
      ...(request.caller ? { key_id: request.caller.keyId } : {}),
    };
    if (request.routeOptions.config.isPublic && reply.statusCode < 500) request.log.debug(line, 'request');
    else request.log.info(line, 'request');
    done();
  });
}
