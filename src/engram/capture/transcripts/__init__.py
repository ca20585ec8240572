"""Transcripts of coding agents and chats, read into one form."""
