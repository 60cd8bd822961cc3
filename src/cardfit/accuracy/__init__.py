"""Predicted against published: the rows that people measured, the rules that rebuild them, rivals and scores."""
