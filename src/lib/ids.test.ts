import { expect, it } from 'vitest';
import { idPattern, newApiKeyToken, newBranchId, newEndpointId, newOrganizationId, newProjectId } from './ids.ts';

it('makes ids in the shapes that clients check', () => {
  for (let i = 0; i < 200; i++) {
    expect(newBranchId()).toMatch(/^br-[a-z0-9]+-[a-z0-9]+-[a-z0-9]{8}$/);
    expect(newEndpointId()).toMatch(/^ep-[a-z0-9]+-[a-z0-9]+-[a-z0-9]{8}$/);
    expect(newProjectId()).toMatch(/^[a-z]+-[a-z]+-\d{8}$/);
    expect(newOrganizationId()).toMatch(/^org-[a-z]+-[a-z]+-\d{8}$/);
    expect(newBranchId()).toMatch(new RegExp(idPattern));
  }
});

it('makes keys of at least 256 random bits', () => {
  const token = newApiKeyToken();
  expect(token).toMatch(/^napi_[a-z0-9]{60}$/);
  expect(60 * Math.log2(36)).toBeGreaterThan(256);
  expect(newApiKeyToken()).not.toBe(token);
});
