/** Every schema that others refer to by `$id`; the application registers them and OpenAPI lists them as components. */

import { CurrentUserReply } from './account.ts';
import { ApiKey, ApiKeyCreated, ApiKeyRevoked } from './api-key.ts';
import { AuthIntegration } from './auth.ts';
import { Annotation, Branch } from './branch.ts';
import { ConnectionDetails, ConnectionParameters } from './connection-uri.ts';
import { Database } from './database.ts';
import { DeletedThing } from './deleted.ts';
import { BranchEndpointOptions, Endpoint } from './endpoint.ts';
import { GeneralError } from './error.ts';
import { BranchHistory } from './history.ts';
import { JWKS } from './key-set.ts';
import { Member } from './member.ts';
import { Operation } from './operation.ts';
import { Organization } from './organization.ts';
import { CursorPage, NextPage } from './pagination.ts';
import { Project, ProjectListItem } from './project.ts';
import { Role } from './role.ts';
import { SavedQuery } from './saved-query.ts';
import { Session } from './session.ts';
import {
  AllowedIps,
  DefaultEndpointSettings,
  EndpointSettings,
  MaintenanceWindow,
  PreloadLibraries,
  ProjectQuota,
  ProjectSettings,
} from './settings.ts';
import { Snapshot } from './snapshot.ts';
import { Webhook, WebhookDelivery } from './webhook.ts';

export const sharedSchemas = [
  GeneralError,
  CursorPage,
  NextPage,
  Operation,
  PreloadLibraries,
  EndpointSettings,
  DefaultEndpointSettings,
  ProjectQuota,
  AllowedIps,
  MaintenanceWindow,
  ProjectSettings,
  ConnectionParameters,
  ConnectionDetails,
  Database,
  Role,
  Endpoint,
  BranchEndpointOptions,
  Branch,
  Annotation,
  Snapshot,
  SavedQuery,
  Webhook,
  WebhookDelivery,
  Session,
  BranchHistory,
  Project,
  ProjectListItem,
  DeletedThing,
  JWKS,
  ApiKey,
  ApiKeyCreated,
  ApiKeyRevoked,
  AuthIntegration,
  Member,
  Organization,
  CurrentUserReply,
];
