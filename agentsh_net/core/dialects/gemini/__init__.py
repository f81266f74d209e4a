"""Gemini generateContent and streamGenerateContent: parts, calls, arguments in pieces."""
