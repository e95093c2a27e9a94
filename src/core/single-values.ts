/**
 * Fields of the published API that can have one value only here. That value is accepted, because clients send back what
 * they were shown; any other is refused with the reason, because a value that is kept without effect would mislead.
 */
import type { ProjectSettings } from '../db/projects.ts';
import { CatnapError } from '../lib/errors.ts';

/** The published name for computes that can autoscale, which all computes here can. */
export const provisioner = 'k8s-neonvm';

export function requireProvisioner(given: string | undefined, field: string): void {
  if (given !== undefined && given !== provisioner) {
    throw refusal(`${field} must be ${provisioner}: every compute can autoscale, and there is no other kind`);
  }
}

export function requireSingleValues(settings: Partial<ProjectSettings> = {}): void {
  const field = 'body.project.settings';
  if (settings.block_vpc_connections === true) {
    throw refusal(`${field}.block_vpc_connections must be false: there are no VPC endpoints that could be blocked`);
  }
  if (settings.hipaa === true) {
    throw refusal(`${field}.hipaa must be false: Catnap makes no statement about HIPAA compliance`);
  }
  if (settings.audit_log_level !== undefined) {
    throw refusal(`${field}.audit_log_level must be left out: Catnap keeps no audit log of statements`);
  }
}

const refusal = (reason: string) => new CatnapError('unprocessable', `invalid request: ${reason}`);
