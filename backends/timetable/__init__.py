"""When each message of an exchange leaves and arrives, derived from an order of messages."""
