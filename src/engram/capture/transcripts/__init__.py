"""Transcripts of coding agents and chats, read into a common form."""
