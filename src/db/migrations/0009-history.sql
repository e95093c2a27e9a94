-- What of a branch's past can be given and what that costs, as the driver last reported it; null until it was asked.
alter table branches add column history jsonb;
