/**
 * Validators and serializers are functions made from a route's schemas, and making those of every route takes longer
 * than everything else at start. Here each is made when its route is first used.
 */
import buildValidators from '@fastify/ajv-compiler';
import buildSerializers from '@fastify/fast-json-stringify-compiler';
import type { FastifyServerOptions } from 'fastify';
import type { FastifyValidationResult } from 'fastify/types/schema.js';
import type { App } from '../kit/app-type.ts';

/** Must be called after the shared schemas are added. */
export function useLazySchemas(app: App, { ajv }: Pick<FastifyServerOptions, 'ajv'>): void {
  const shared = app.getSchemas() as Record<string, object>;
  const validatorOf = buildValidators()(shared, ajv);
  const serializerOf = buildSerializers()(shared);
  app.setValidatorCompiler((route) => {
    let made: ReturnType<typeof validatorOf> | undefined;
    const validate: FastifyValidationResult = (value: unknown) => {
      made ??= validatorOf(route);
      const isValid = made(value) === true;
      // Fastify reads the errors from here.
      validate.errors = made.errors ?? null;
      return isValid;
    };
    return validate;
  });
  app.setSerializerCompiler((route) => {
    let made: ReturnType<typeof serializerOf> | undefined;
    return (value) => {
      made ??= serializerOf({ ...route, httpStatus: route.httpStatus ?? '200' });
      return made(value);
    };
  });
}
