"""HTTP without IO: heads read strictly, where a request goes and who may send it, URLs, signatures, WebSocket frames."""
