"""Amazon Bedrock: converse-stream and invoke-with-response-stream, in event-stream messages."""
