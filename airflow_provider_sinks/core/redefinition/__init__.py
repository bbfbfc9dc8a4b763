"""``CREATE OR REPLACE`` of a sink: what a declared spec changes of the one in force, and what that means."""
