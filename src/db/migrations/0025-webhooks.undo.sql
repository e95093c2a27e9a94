drop table webhook_deliveries, webhooks;
