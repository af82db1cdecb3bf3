"""The load client: sends requests to one server and records times; standard library only, imports nothing of ours."""

METER_VERSION = "0.3.1"
METER_PLAN_VERSION = 2
METER_RECORD_VERSION = 2
