/**
 * Fastify and its swagger plugin read some of their own files only when an instance is built. The API process gives up
 * its rights between loading this module and building the application, and may then be unable to read the checkout, so
 * one instance is built and thrown away here, while loading. `preload.test.ts` checks that nothing is read later.
 */
import swagger from '@fastify/swagger';
import { fastify } from 'fastify';
import { pino } from 'pino';

const ajv = { customOptions: { validateSchema: false } };
const instance = fastify({ loggerInstance: pino({ level: 'silent' }), ajv });
await instance.register(swagger, { openapi: { openapi: '3.1.0', info: { title: '', version: '' } } });
const schema = {
  body: { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } },
  response: { 200: { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } } },
};
instance.post('/', { schema }, async () => ({}));
await instance.ready();
instance.swagger();
await instance.close();
